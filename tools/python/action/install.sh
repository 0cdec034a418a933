#!/usr/bin/env bash
# Makes a Python environment with remat-opt: `install.sh FOLDER SOURCES`. VERSION: a release, `source`, or nothing for the latest
# release, and for the sources where there is none.
set -euo pipefail

folder=$1 sources=$2
python3 -m venv "$folder"
install() { "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"; }

case ${VERSION:-} in
source) install "${sources}[proofs]" ;;
# A release for another machine has no wheel for this one, and would be built.
'') install --only-binary remat-opt 'remat-opt[proofs]' || {
    echo '::notice title=remat-opt::There is no release for this machine: the sources of the action are built.'
    install "${sources}[proofs]"
} ;;
*) install --only-binary remat-opt "remat-opt[proofs]==$VERSION" ;;
esac
