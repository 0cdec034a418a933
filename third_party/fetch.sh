#!/usr/bin/env bash
# Installs what the full test run needs into this folder: a Python environment with pinned wheels, and a stable path to
# ONNX Runtime's library. Does nothing where it is already there. Needs python3 and pip; on Debian it installs them itself.
set -euo pipefail
cd "$(dirname "$0")"

stamp=venv/.installed
if [ -e "$stamp" ] && cmp -s requirements.txt "$stamp" && [ -e onnxruntime/lib/libonnxruntime.so ]; then
    exit 0
fi

usable() { python3 -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
if ! usable; then
    if command -v apt-get >/dev/null; then
        sudo=""
        [ "$(id -u)" -eq 0 ] || sudo=sudo
        $sudo apt-get update -qq
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3 python3-venv python3-pip
    fi
    usable || { echo "third_party/fetch.sh: needs python3 (3.11 or later) with the venv module" >&2; exit 1; }
fi

[ -x venv/bin/python ] || python3 -m venv venv
venv/bin/python -m pip download --quiet --disable-pip-version-check --only-binary :all: --dest wheels -r requirements.txt
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links wheels -r requirements.txt

library=$(find "$PWD/venv/lib" -path '*onnxruntime/capi/libonnxruntime.so.*' | sort | tail -n 1)
[ -n "$library" ] || { echo "third_party/fetch.sh: the onnxruntime wheel holds no libonnxruntime.so" >&2; exit 1; }
mkdir -p onnxruntime/lib
ln -sfn "../../${library#"$PWD"/}" onnxruntime/lib/libonnxruntime.so
cp requirements.txt "$stamp"
