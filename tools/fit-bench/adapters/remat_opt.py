"""remat-opt, as it is installed: the package and nothing else."""

from adapter import Adapter
from cases import ALIGNMENT

_FILE = {"fission": "off", "arena_plan": False}
_ORDER = _FILE | {"options": ["--max-computes", "1"]}
_AUTO, _MIN = {"budget": "auto"}, {"budget": "min"}


def _tasks():
    budgets = {"auto": _AUTO, "min": _MIN}
    file = {name: {"optimize": budget | _FILE} for name, budget in budgets.items()}
    yield ("order", "onnx"), {"order": {"optimize": _ORDER}, "order, arena off": {"optimize": _ORDER, "arena": False}}
    yield ("order + recompute", "onnx"), file
    yield (
        ("order + recompute", "torch"),
        {
            f"{inner}, {share}": {"memory": share, "inner": inner}
            for inner, share in (("aot_eager", "60%"), ("aot_eager", "min"), ("inductor", "60%"))
        },
    )
    yield (
        ("+ offsets", "onnx"),
        {
            "order": {"optimize": _ORDER | {"arena_plan": True}},
            **{name: {"optimize": budget | {"fission": "off"}} for name, budget in budgets.items()},
        },
    )
    yield ("+ offsets", "buffers"), {"place": {}}
    yield ("+ tiles", "onnx"), {name: {"optimize": budget} for name, budget in budgets.items()}
    yield ("any shape", "onnx"), {"as it came": {"optimize": {"budget": "none"}}, "auto": {"optimize": _AUTO}}
    yield ("whole process", "onnx"), {"auto": {"optimize": _AUTO}, "loadable form": {"optimize": {"process": True}}}


class RematOpt(Adapter):
    needs = ("remat-opt", "onnxruntime")
    asked = dict(_tasks())

    def prepare(self, case, options, model, folder):
        import remat_opt

        asked = dict(options["optimize"])
        path = folder / ("form" if asked.get("process") else "model.onnx")
        if case.dims:
            name, sizes = case.dims[0][0], [size for _, size in case.dims]
            asked["shapes"] = {name: range(sizes[0], sizes[-1] + 1)}
        result = remat_opt.optimize(str(model), output=path, time_limit=self.time_limit, **asked)
        promised = None if case.task == "whole process" else _predicted(result.report, options)
        return {"model": str(result.path), "predicted_bytes": promised}

    def session(self, prepared, options):
        import onnxruntime
        import remat_opt

        chosen = onnxruntime.SessionOptions()
        chosen.intra_op_num_threads, chosen.log_severity_level = 1, 3
        if not options.get("arena", True):
            chosen.enable_cpu_mem_arena = chosen.enable_mem_pattern = False
        session = remat_opt.session(prepared["model"], chosen)
        return lambda feed: session.run(None, feed)

    def step(self, model, options):
        import remat_opt.torch
        import torch

        self.backend = remat_opt.torch.backend(options["memory"], options["inner"], time_limit=self.time_limit)
        return torch.compile(model, backend=self.backend)

    def predicted_bytes(self, prepared):
        if not hasattr(self, "backend"):
            return prepared["predicted_bytes"]
        (report,) = self.backend.reports
        return None if report.promised_bytes is None else report.promised_bytes - report.external_bytes

    def place(self, buffers, options):
        import remat_opt

        rows = [
            {"id": at, "lower": lower, "upper": upper, "size": size, "alignment": ALIGNMENT}
            for at, (lower, upper, size) in enumerate(buffers)
        ]
        return remat_opt.place(rows, time_limit=self.time_limit).offsets


def _predicted(report, options):
    """What runs of the written file are promised to take: its block, or the arena of a default session, or the buffers."""
    if report.get("arena_plan"):
        return report["arena_plan"]["block_bytes"] + report["arena_plan"]["outside_bytes"]
    return report["predicted_arena_steady_bytes" if options.get("arena", True) else "predicted_peak_bytes"]
