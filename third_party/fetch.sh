#!/usr/bin/env bash
# Installs what the full test run needs into this folder: a Python environment with pinned wheels, OR-Tools among them, and a stable path
# to ONNX Runtime's library. Every wheel must have a hash that the pins name, when it is downloaded and again when it is installed.
# Does nothing where it is already there. With the argument `torch` it installs PyTorch, ExecuTorch, training frameworks and exporters as well, which brings gigabytes. Needs python3 and pip; on Debian it installs them itself. LLVM 22 with MLIR comes from the
# system's own packages, where it has them; without it everything else still works.
set -euo pipefail
cd "$(dirname "$0")"

stamp=venv/.installed
have_python() { [ -e "$stamp" ] && cmp -s requirements.txt "$stamp" && [ -e onnxruntime/lib/libonnxruntime.so ]; }
iree_stamp=venv/.installed-mlir
have_iree() { [ -e "$iree_stamp" ] && cmp -s requirements-mlir.txt "$iree_stamp"; }
jax_stamp=venv/.installed-jax
have_jax() { [ -e "$jax_stamp" ] && cmp -s requirements-jax.txt "$jax_stamp"; }
llvm=${MLIR_SYS_220_PREFIX:-/usr/lib/llvm-22}
have_llvm() { [ -d "$llvm/lib/cmake/mlir" ] && [ -x "$llvm/bin/mlir-opt" ] && [ -x "$llvm/bin/lit" ] && command -v cmake >/dev/null && command -v ninja >/dev/null; }
# Pages of reports are tested in a browser.
have_browser() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }
# The page of tools/web is built for it.
have_wasm() { [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ] && command -v wasm-opt >/dev/null; }
# Systems that the sources are checked for without being there: `make cross`.
CROSS="x86_64-pc-windows-gnu aarch64-apple-darwin"
have_cross() { for target in $CROSS; do [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || return 1; done; }
have_bare_metal() { [ -d "$(rustc --print sysroot)/lib/rustlib/thumbv7em-none-eabi" ]; }
tflm_stamp=venv/.installed-tflm
have_tflm() { [ -e "$tflm_stamp" ] && cmp -s requirements-tflm.txt "$tflm_stamp"; }
maturin_stamp=venv/.installed-wheel
have_maturin() { [ -e "$maturin_stamp" ] && cmp -s requirements-wheel.txt "$maturin_stamp"; }
docs_stamp=venv/.installed-docs
have_docs() { [ -e "$docs_stamp" ] && cmp -s requirements-docs.txt "$docs_stamp"; }
torch_stamp=venv/.installed-torch
wants_torch() { [ "${1-}" = torch ]; }
have_torch() { [ -e "$torch_stamp" ] && cmp -s requirements-torch.txt "$torch_stamp"; }
executorch_stamp=venv/.installed-executorch
have_executorch() { [ -e "$executorch_stamp" ] && cmp -s requirements-executorch.txt "$executorch_stamp"; }
frameworks_stamp=venv/.installed-frameworks
have_frameworks() { [ -e "$frameworks_stamp" ] && cmp -s requirements-frameworks.txt "$frameworks_stamp"; }
exporters_stamp=exporters/.installed
have_exporters() { [ -e "$exporters_stamp" ] && cmp -s requirements-exporters.txt "$exporters_stamp"; }
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
has_packages() { command -v apt-get >/dev/null && { [ -z "$sudo" ] || $sudo -n true 2>/dev/null; } && $sudo apt-get update -qq >/dev/null 2>&1; }
has_package() { apt-cache show "$1" >/dev/null 2>&1; }
if have_python && have_iree && have_jax && have_tflm && have_maturin && have_docs && have_llvm && have_browser && have_wasm && have_bare_metal && have_cross && { ! wants_torch "$@" || { have_torch && have_executorch && have_frameworks && have_exporters; }; }; then
    exit 0
fi

packages() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; }

# Runs as part of a condition, where the shell does not stop at errors: every step says itself whether to go on.
fetch_llvm() {
    has_packages && has_package libmlir-22-dev || return 1
    packages libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools libpolly-22-dev libzstd-dev clang-22 lld-22 libclang-22-dev \
        cmake ninja-build || return 1
    have_llvm
}
if ! have_llvm && ! fetch_llvm; then
    echo "third_party/fetch.sh: LLVM 22 with MLIR is not in $llvm and cannot be installed from here; what needs it is left out." >&2
    echo "  It comes with Debian's packages libmlir-22-dev, mlir-22-tools, llvm-22-tools, clang-22, cmake and ninja-build, or lies" >&2
    echo "  where MLIR_SYS_220_PREFIX says." >&2
fi

fetch_browser() {
    has_packages || return 1
    packages chromium || return 1
}
if ! have_browser && ! fetch_browser; then
    echo "third_party/fetch.sh: there is no Chromium and it cannot be installed from here; tests of pages are skipped." >&2
fi

if ! have_cross && ! { command -v rustup >/dev/null && rustup --quiet target add $CROSS; }; then
    echo "third_party/fetch.sh: there is no standard library of Rust for other systems; the sources are checked for this one only." >&2
fi

fetch_wasm() {
    command -v rustup >/dev/null && rustup --quiet target add wasm32-unknown-unknown || return 1
    command -v wasm-opt >/dev/null || { has_packages && packages binaryen; }
}
if ! have_wasm && ! fetch_wasm; then
    echo "third_party/fetch.sh: there is no standard library of Rust for wasm32-unknown-unknown or no wasm-opt; the page for browsers is not built." >&2
fi

# For the planner as a part of devices, which a test builds.
if ! have_bare_metal && ! { command -v rustup >/dev/null && rustup --quiet target add thumbv7em-none-eabi; }; then
    echo "third_party/fetch.sh: there is no core library of Rust for thumbv7em-none-eabi; the planner is not built for it." >&2
fi

usable() { python3 -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
if ! usable; then
    if command -v apt-get >/dev/null; then
        $sudo apt-get update -qq
        packages python3 python3-venv python3-pip
    fi
    usable || { echo "third_party/fetch.sh: needs python3 (3.11 or later) with the venv module" >&2; exit 1; }
fi

[ -x venv/bin/python ] || python3 -m venv venv

pip() { venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }
# Whatever a command line or a configuration says, what has no hash in the pins is refused.
download_wheels() { pip download --require-hashes --only-binary :all: --dest wheels "$@"; }
install_wheels() { pip install --require-hashes --only-binary :all: --no-index --find-links wheels "$@"; }

if ! have_python; then
    download_wheels -r requirements.txt
    install_wheels -r requirements.txt

    library=$(find "$PWD/venv/lib" -path '*onnxruntime/capi/libonnxruntime.so.*' | sort | tail -n 1)
    [ -n "$library" ] || { echo "third_party/fetch.sh: the onnxruntime wheel holds no libonnxruntime.so" >&2; exit 1; }
    mkdir -p onnxruntime/lib
    ln -sfn "../../${library#"$PWD"/}" onnxruntime/lib/libonnxruntime.so
    cp requirements.txt "$stamp"
fi

# Only tests read these, and there are wheels for few systems.
fetch_iree() {
    download_wheels -r requirements.txt -r requirements-mlir.txt || return 1
    install_wheels -r requirements.txt -r requirements-mlir.txt || return 1
    cp requirements-mlir.txt "$iree_stamp"
}
if ! have_iree && ! fetch_iree; then
    echo "third_party/fetch.sh: there are no wheels of IREE and torch-mlir for this machine; their tests are skipped." >&2
fi

# Only tests read it.
fetch_jax() {
    download_wheels -r requirements.txt -r requirements-jax.txt || return 1
    install_wheels -r requirements.txt -r requirements-jax.txt || return 1
    cp requirements-jax.txt "$jax_stamp"
}
if ! have_jax && ! fetch_jax; then
    echo "third_party/fetch.sh: there are no wheels of JAX for this machine; its tests are skipped." >&2
fi

# Builds the Python package; there is no wheel of it for every system.
fetch_maturin() {
    download_wheels -r requirements.txt -r requirements-wheel.txt || return 1
    install_wheels -r requirements.txt -r requirements-wheel.txt || return 1
    cp requirements-wheel.txt "$maturin_stamp"
}
if ! have_maturin && ! fetch_maturin; then
    echo "third_party/fetch.sh: there is no wheel of maturin for this machine; the Python package is neither built nor tested." >&2
fi

# Builds the documentation as a site.
fetch_docs() {
    download_wheels -r requirements.txt -r requirements-wheel.txt -r requirements-docs.txt || return 1
    install_wheels -r requirements.txt -r requirements-wheel.txt -r requirements-docs.txt || return 1
    cp requirements-docs.txt "$docs_stamp"
}
if ! have_docs && ! fetch_docs; then
    echo "third_party/fetch.sh: MkDocs cannot be installed from here; the documentation is not built as a site." >&2
fi

# What `remat_opt.tflm` is tested with.
fetch_tflm() {
    download_wheels --no-deps -r requirements-tflm.txt || return 1
    install_wheels --no-deps -r requirements-tflm.txt || return 1
    cp requirements-tflm.txt "$tflm_stamp"
}
if ! have_tflm && ! fetch_tflm; then
    echo "third_party/fetch.sh: there is no wheel of TensorFlow Lite Micro for this machine; the tests of remat_opt.tflm are skipped." >&2
fi

# What `remat_opt.torch` is tested with. Its wheels take gigabytes beside what they install, so they do not stay.
fetch_torch() {
    download_wheels --dest wheels/torch -r requirements.txt -r requirements-wheel.txt -r requirements-torch.txt || return 1
    install_wheels --find-links wheels/torch -r requirements.txt -r requirements-wheel.txt -r requirements-torch.txt || return 1
    rm -rf wheels/torch
    cp requirements-torch.txt "$torch_stamp"
}
if wants_torch "$@" && ! have_torch && ! fetch_torch; then
    echo "third_party/fetch.sh: there are no wheels of PyTorch for this machine; the tests of remat_opt.torch are skipped." >&2
fi

# What `remat_opt.executorch` is tested with. Its pins name all that the tests import, and no more.
fetch_executorch() {
    download_wheels --no-deps -r requirements-executorch.txt || return 1
    install_wheels --no-deps -r requirements-executorch.txt || return 1
    cp requirements-executorch.txt "$executorch_stamp"
}
if wants_torch "$@" && have_torch && ! have_executorch && ! fetch_executorch; then
    echo "third_party/fetch.sh: there are no wheels of ExecuTorch for this machine; the tests of remat_opt.executorch are skipped." >&2
fi

# What `remat_opt.torch` trains in. Its pins name all that the tests import, and no more. Most of it is never imported, so nothing is compiled ahead.
fetch_frameworks() {
    download_wheels --no-deps -r requirements-frameworks.txt || return 1
    install_wheels --no-deps --no-compile -r requirements-frameworks.txt || return 1
    cp requirements-frameworks.txt "$frameworks_stamp"
}
if wants_torch "$@" && have_torch && ! have_frameworks && ! fetch_frameworks; then
    echo "third_party/fetch.sh: there are no wheels of the training frameworks for this machine; their tests are skipped." >&2
fi

# What folders of models are exported and planned with. Versions differ from those of the environment, so they lie beside it, and tests put them first.
fetch_exporters() {
    download_wheels --no-deps -r requirements-exporters.txt || return 1
    rm -rf exporters
    install_wheels --no-deps --no-compile --target exporters -r requirements-exporters.txt || return 1
    cp requirements-exporters.txt "$exporters_stamp"
}
if wants_torch "$@" && have_torch && ! have_exporters && ! fetch_exporters; then
    echo "third_party/fetch.sh: there are no wheels of Optimum and Olive for this machine; their tests are skipped." >&2
fi
