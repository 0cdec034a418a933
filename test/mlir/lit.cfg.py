"""The lit suite: the stock tools of LLVM 22 with the `remat` plugin loaded.

Under CMake (`ninja check-remat`) lit.site.cfg.py says where everything is. On its own,

    lit test/mlir

takes the plugin that cargo built last, or the one in REMAT_PLUGIN, and the runtime that CMake built last in target/mlir or build, or the
one in REMAT_RUNTIME. Tests of what is not there are unsupported, not passed.

Words in RUN lines:
  %load       options of `mlir-opt` that load the plugin as dialect and as passes
  %remat      the plugin itself; %runtime: the library that keeps pages
  %bufferize  the passes from tensors to buffers that are freed after their last use
  %llvm       the passes from there to the LLVM dialect, for one `--pass-pipeline`
  %run        `mlir-runner` with its libraries and the runtime, for a function `main` without results
"""

import os
import pathlib

import lit.formats

root = pathlib.Path(__file__).resolve().parents[2]
site = getattr(config, "remat_site", None) or {}


def newest(names):
    """The file that was built last, of those that exist."""
    found = [path for path in map(pathlib.Path, names) if path.exists()]
    return str(max(found, key=lambda path: path.stat().st_mtime)) if found else None


target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
prefix = site.get("llvm") or os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22")
tools, libraries = os.path.join(prefix, "bin"), os.path.join(prefix, "lib")
if site:
    scheduler, runtime = site["scheduler"], site["runtime"]
else:
    built = [target / "mlir", root / "build"]
    scheduler = os.environ.get("REMAT_PLUGIN") or newest(target / profile / "libremat.so" for profile in ("release", "debug"))
    runtime = os.environ.get("REMAT_RUNTIME") or newest(folder / "lib" / "libremat_runtime.so" for folder in built)
plugin = scheduler or site.get("dialect_plugin")

config.name = "remat"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = site.get("exec_root") or str(target / "lit")

config.environment["PATH"] = os.pathsep.join([tools, os.environ.get("PATH", "")])
config.environment["HOME"] = os.environ.get("HOME", "")
# Pages and other passing files do not outlive the suite.
config.environment["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")

if not os.path.exists(os.path.join(tools, "mlir-opt")):
    lit_config.fatal(f"no mlir-opt in `{tools}`; third_party/fetch.sh installs LLVM 22, MLIR_SYS_220_PREFIX says where else it is")
if plugin is None:
    lit_config.fatal("no plugin: `cargo build -p remat-plugin --features llvm`, or REMAT_PLUGIN, or `ninja check-remat`")

# Substitutions are tried in order: what begins like another one comes first.
config.substitutions += [
    ("%load", f"--load-dialect-plugin={plugin} --load-pass-plugin={plugin}"),
    ("%remat", plugin),
    ("%source-root", str(root)),
    ("%llvm-prefix", prefix),
    (
        "%bufferize",
        "one-shot-bufferize{bufferize-function-boundaries=1},buffer-deallocation-pipeline,"
        "func.func(optimize-allocation-liveness)",
    ),
    (
        "%llvm",
        "func.func(convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-math-to-llvm,"
        "convert-math-to-libm,convert-arith-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,"
        "convert-index-to-llvm,reconcile-unrealized-casts",
    ),
]

if scheduler:
    config.available_features.add("scheduler")
if runtime:
    config.available_features.add("runtime")
    runner_libraries = [os.path.join(libraries, f"lib{name}.so") for name in ("mlir_runner_utils", "mlir_c_runner_utils")]
    config.substitutions += [
        ("%runtime", runtime),
        ("%run", f"mlir-runner -e main --entry-point-result=void -shared-libs={','.join(runner_libraries + [runtime])}"),
    ]
if site.get("build"):
    config.available_features.add("cmake")
    config.substitutions += [("%build", site["build"]), ("%cmake", site["cmake"]), ("%cxx", site["cxx"]), ("%cc", site["cc"])]
