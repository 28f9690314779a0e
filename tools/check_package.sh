#!/usr/bin/env bash
# Builds wheel and source archive in the folder given, checks both, and runs the wheel where nothing else is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath "$1")

python -m build --no-isolation --outdir "$work/dist" . > /dev/null
twine check --strict "$work"/dist/*
check-wheel-contents "$work"/dist/*.whl

python -m venv "$work/plain"
"$work/plain/bin/python" -m pip install --quiet "$work"/dist/*.whl
cd "$work"
export BYOC_CACHE=off
plain/bin/byoc doctor > /dev/null
plain/bin/byoc demo
plain/bin/byoc run squeezenet
plain/bin/byoc-opt --help > /dev/null
plain/bin/byoc new-backend my_npu
