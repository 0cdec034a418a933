"""IREE: compiles the model; results lie in one buffer whose offsets the compiler chooses. Its kernels round otherwise."""

from adapter import Adapter


class Iree(Adapter):
    needs = ("iree-base-compiler", "iree-base-runtime", "onnx")
    asked = {(task, "onnx"): {"llvm-cpu": {}} for task in ("order", "+ offsets", "+ tiles", "any shape", "whole process")}

    def prepare(self, case, options, model, folder):
        import iree.compiler
        from iree.compiler.tools.import_onnx import __main__ as importer

        text, module = folder / "model.mlir", folder / "model.vmfb"
        importer.main(importer.parse_arguments([str(model), "-o", str(text)]))
        host = ["--iree-llvmcpu-target-cpu=host"]
        compiled = iree.compiler.compile_file(str(text), target_backends=["llvm-cpu"], input_type="onnx", extra_args=host)
        module.write_bytes(compiled)
        return {"module": str(module), "function": case.name}

    def session(self, prepared, options):
        import iree.runtime

        config = iree.runtime.Config("local-sync")
        context = iree.runtime.SystemContext(config=config)
        module = iree.runtime.VmModule.mmap(config.vm_instance, prepared["module"])
        context.add_vm_module(module)
        function = context.modules[module.name][prepared["function"]]

        def run(feed):
            found = function(*feed.values())
            return [one.to_host() for one in (found if isinstance(found, (list, tuple)) else [found])]

        return run
