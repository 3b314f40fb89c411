#!/usr/bin/env bash
# The wheel of `make wheel` installs into a fresh environment without a compiler, and the demo learns there.
# usage: tests/wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist
make --silent wheel
wheel=$(echo "$PWD"/dist/*-manylinux_*.whl)
test -f "$wheel"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
cd "$fresh"  # not beside the sources
export CC=/bin/false CXX=/bin/false
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet "$wheel"
venv/bin/rewirl --version | grep "instruction set"
venv/bin/rewirl demo --steps 6000 --run-dir demo  # 5000 random steps, then 1000 updates
venv/bin/rewirl verify demo
REWIRL_ISA=baseline venv/bin/rewirl evaluate demo --episodes 1
echo "the wheel works: $(basename "$wheel")"
