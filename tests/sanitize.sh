#!/usr/bin/env bash
# The engine's tests under the address and undefined-behaviour sanitizers: fails on any read or write out of bounds.
# usage: tests/sanitize.sh [python] [arguments for pytest]
# CXXFLAGS=-DREWIRL_WIDTH=16 tries vectors as wide as AVX-512 has them on a machine that has not.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${1:-python3}")
shift || true
site=build/sanitize/site

# Kernels at -O3 under the sanitizers take minutes to compile; the last -O counts, so -O1 is put behind it. What CMake's
# option leaves out (the file that knows Python, and the headers in it) is instrumented by the flags.
sanitizers="-fsanitize=address,undefined -fno-sanitize-recover=all ${CXXFLAGS:-}"
isolation=$("$python" -c "import nanobind, scikit_build_core" 2>/dev/null && echo --no-build-isolation || true)
"$python" -m pip install --quiet $isolation --no-deps --upgrade --target "$site" . -Cbuild-dir=build/sanitize/cmake \
  -Ccmake.define.REWIRL_SANITIZE=ON -Ccmake.define.CMAKE_CXX_FLAGS="$sanitizers" \
  -Ccmake.define.CMAKE_CXX_COMPILE_OBJECT="<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O1 -g1 -o <OBJECT> -c <SOURCE>" \
  -Ccmake.build-type=RelWithDebInfo -Cinstall.strip=false  # so that reports name functions and lines

# The interpreter is not instrumented, so the sanitizers come first by LD_PRELOAD, with the C++ library whose exceptions they
# intercept. Without `site` (-S) no editable installation stands before the one made here.
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/sanitize/cmake/CMakeCache.txt)
preload=""
for library in libasan.so libubsan.so libstdc++.so; do preload+=" $(readlink -f "$("$compiler" -print-file-name=$library)")"; done
packages=$("$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
export PYTHONPATH="$PWD/$site:$packages"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD="$preload" exec "$python" -S -m pytest -p no:cacheprovider --capture=sys --hypothesis-profile=sanitizers tests/nn \
  -k "not really_shared and not python_runs" "$@"  # those two are about time
