"""What goes wrong, sorted by what can be done about it."""

from __future__ import annotations

from typing import Any


class RematError(Exception):
    """Why there is no result.

    `str()` of it is the sentence that the command line prints, with the numbers in it.
    """

    kind: str
    """The outcome: `finding`, `usage`, `input`, `internal`, `limit` or `interrupted`."""
    op: str | None
    """The op or tensor that it is about, by its name in the model."""
    help: str | None
    """What can be done about it."""
    details: dict[str, Any]
    """The names and numbers of the message; `details["type"]` says which there are (`remat-opt explain remat-error/1`)."""
    report: dict[str, Any] | None
    """The report of the command, where there is one all the same."""

    def __init__(
        self,
        message: str,
        kind: str = "usage",
        op: str | None = None,
        help: str | None = None,
        details: dict[str, Any] | None = None,
        report: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.op = op
        self.help = help
        self.details = details or {}
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self.args[0]), self.kind, self.op, self.help, self.details, self.report)

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message}\n{self.help}" if self.help else message


class InfeasibleError(RematError):
    """Nothing meets what was asked for: it is proved that no plan keeps the budget, or that no block holds the buffers; or
    no file keeps the budget in ONNX Runtime, and `details` says what the closest one takes (`reached_bytes`), measured or
    predicted (`is_measured`)."""


class VerificationError(RematError):
    """A plan breaks rules of the checker, two models differ, or a measured peak lies above the predicted one."""


class ModelError(RematError, ValueError):
    """The model, graph or plan cannot be read, or cannot be used in the way that was asked for."""


class UsageError(RematError, ValueError):
    """Arguments that make no sense, alone or together."""


class LimitError(RematError):
    """A limit of time, steps or memory was reached before a plan was found: with more of it there may be one."""


class InternalError(RematError, RuntimeError):
    """The checker rejected our own result: a bug of remat-opt, please report it. Problem and plan were saved in the
    working directory."""


def error_of(document: dict[str, Any]) -> RematError | None:
    """The exception for what a command printed, if it failed."""
    error = document.get("error")
    if error is None:
        return None
    details = error.get("details") or {}
    report = None if document.get("format") == "remat-error/1" else {k: v for k, v in document.items() if k != "error"}
    return _class(error["kind"], details.get("type"), document)(
        error["message"], error["kind"], error.get("node"), error.get("help"), details, report
    )


def _class(kind: str, about: str | None, document: dict[str, Any]) -> type[RematError]:
    if kind == "finding":
        is_check = about in ("violations", "output-differs", "prediction-exceeded")
        is_check = is_check or str(document.get("format", "")).startswith("remat-verify")
        return VerificationError if is_check else InfeasibleError
    classes: dict[str, type[RematError]] = {
        "usage": UsageError,
        "input": ModelError,
        "internal": InternalError,
        "limit": LimitError,
        "interrupted": LimitError,
    }
    return classes.get(kind, RematError)


def fields(error: RematError) -> dict[str, Any]:
    """An exception as an object that JSON takes."""
    return {
        "type": type(error).__name__,
        "message": str(error.args[0]),
        "kind": error.kind,
        "node": error.op,
        "help": error.help,
        "details": error.details,
    }


def from_fields(document: dict[str, Any]) -> RematError:
    """The exception of such an object."""
    known: dict[str, type[RematError]] = {one.__name__: one for one in RematError.__subclasses__()}
    return known.get(document["type"], RematError)(
        document["message"], document["kind"], document["node"], document["help"], document["details"]
    )
