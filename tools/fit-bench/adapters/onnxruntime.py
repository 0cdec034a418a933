"""ONNX Runtime as it is, and by its own settings. The setting `default`, in which nothing is set, is the reference."""

from adapter import Adapter, in_onnxruntime

_SETTINGS = {
    "default": {},
    "arena off": {"arena": False},
    "memory pattern off": {"pattern": False},
    "arena as requested": {"extend": True},
    "arena shrinks after runs": {"shrink": True},
    "priority order": {"order": "PRIORITY_BASED"},
    "level extended": {"level": "ORT_ENABLE_EXTENDED"},
    "level basic": {"level": "ORT_ENABLE_BASIC"},
    "level off": {"level": "ORT_DISABLE_ALL"},
}
_FEW = {name: _SETTINGS[name] for name in ("default", "arena off")}
_WEIGHTS = {"prepacking off": {"entries": {"session.disable_prepacking": "1"}}, "weights in a file": {"external": True}}


class OnnxRuntime(Adapter):
    needs = ("onnxruntime",)
    asked = {
        ("order", "onnx"): _SETTINGS,
        ("order + recompute", "onnx"): _FEW,
        ("+ offsets", "onnx"): {name: _SETTINGS[name] for name in (*_FEW, "memory pattern off", "arena as requested")},
        ("+ tiles", "onnx"): _FEW,
        ("any shape", "onnx"): {name: _SETTINGS[name] for name in (*_FEW, "arena shrinks after runs")},
        ("whole process", "onnx"): _FEW | _WEIGHTS,
    }

    def prepare(self, case, options, model, folder):
        if not options.get("external"):
            return {"model": str(model)}
        import onnx

        path = folder / "model.onnx"
        onnx.save(onnx.load(str(model)), str(path), save_as_external_data=True, location="weights.data")
        return {"model": str(path)}

    def session(self, prepared, options):
        import onnxruntime

        chosen, each = onnxruntime.SessionOptions(), onnxruntime.RunOptions()
        chosen.enable_cpu_mem_arena = options.get("arena", True)
        chosen.enable_mem_pattern = options.get("pattern", True)
        if "level" in options:
            chosen.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, options["level"])
        if "order" in options:
            chosen.execution_order = getattr(onnxruntime.ExecutionOrder, options["order"])
        if options.get("extend"):
            kind = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
            memory = onnxruntime.OrtMemoryInfo("Cpu", kind, 0, onnxruntime.OrtMemType.DEFAULT)
            arena = onnxruntime.OrtArenaCfg({"arena_extend_strategy": 1})
            onnxruntime.create_and_register_allocator(memory, arena)
            chosen.add_session_config_entry("session.use_env_allocators", "1")
        if options.get("shrink"):
            each.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        for key, value in options.get("entries", {}).items():
            chosen.add_session_config_entry(key, value)
        return in_onnxruntime(prepared["model"], chosen, each)
