"""`optimum-cli onnxruntime remat`: a command of Hugging Face Optimum. Only its program imports this module."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from optimum.commands.base import BaseOptimumCLICommand, CommandInfo


def _dimension(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal():
        raise ArgumentTypeError(f"`{text}` is no dimension: NAME=N")
    return name, int(size)


class RematCommand(BaseOptimumCLICommand):
    """Plans the memory of each ONNX model of a folder."""

    COMMAND = CommandInfo(name="remat", help="Make ONNX models take less memory, with the same outputs.")

    @staticmethod
    def parse_args(parser: ArgumentParser) -> None:
        """Adds the options."""
        required = parser.add_argument_group("Required arguments")
        required.add_argument(
            "--onnx_model", type=Path, required=True, help="Path to the folder where the ONNX models are located."
        )
        required.add_argument("-o", "--output", type=Path, required=True, help="Path to the folder to write.")
        optional = parser.add_argument_group("Optional arguments")
        optional.add_argument("--budget", default="auto", help="Peak of each model: auto (the default), 70%%, 512MiB, min.")
        optional.add_argument(
            "--dim",
            action="append",
            default=[],
            type=_dimension,
            metavar="NAME=N",
            help="Size of an open dimension to plan at; may be repeated. Otherwise what the configurations say.",
        )
        optional.add_argument("--time_limit", default="10s", help="Time to search for each model: 10s, 5min.")
        optional.add_argument(
            "--step_limit", type=int, help="Most steps of each search: with it, every call gives the same plans."
        )
        optional.add_argument("--no_arena_plan", action="store_true", help="Do not plan where each buffer lies.")

    def run(self) -> None:
        """Runs the command. A model that cannot be planned is copied, and the exit status is 1."""
        from remat_opt import RematError, optimize_folder

        options: dict[str, Any] = {"budget": self.args.budget, "time_limit": self.args.time_limit}
        if self.args.step_limit is not None:
            options |= {"step_limit": self.args.step_limit, "threads": 1}
        try:
            found = optimize_folder(
                self.args.onnx_model,
                self.args.output,
                dims=dict(self.args.dim),
                arena_plan=not self.args.no_arena_plan,
                started=lambda name: print(f"{name}: planning", file=sys.stderr),
                **options,
            )
        except RematError as error:
            sys.exit(f"error: {error}")
        print(found)
        if any(one.error is not None for one in found):
            sys.exit(1)
