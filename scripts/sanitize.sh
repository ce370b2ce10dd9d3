#!/usr/bin/env bash
# Builds the extensions with the address and undefined-behaviour sanitizers, in a folder of their own, and runs tests of what
# reads and writes memory in C: kernels, collation, engine, eager operators, shared memory; and hostile files.
#
#   scripts/sanitize.sh            all of it
#   scripts/sanitize.sh small      what .ci/run takes of it
#   scripts/sanitize.sh fuzz N     N damaged copies of each kind of file
#   scripts/sanitize.sh refused    the selection of `small` with requests for memory refused (tests/refused_memory.py), or what follows
#   scripts/sanitize.sh TESTS...   these arguments of pytest
#
# environment: PYTHON, whose packages include those that building and testing need; BUILD, the folder (build/sanitized).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
build=$(realpath -m "${BUILD:-build/sanitized}")

mkdir -p "$build"
FLUIDLITE_SANITIZE=address,undefined "$python" setup.py -q build_ext --build-lib "$build/lib" --build-temp "$build/temp"
tar --create --exclude='*.so' --exclude='*.cpp' --exclude=__pycache__ fluidlite | tar --extract --directory="$build/lib"
tar --create --exclude=__pycache__ tests pyproject.toml | tar --extract --directory="$build"

run=(-m pytest -q -p no:cacheprovider --capture=sys) # reports go to the real standard error
small=(tests/ext/test_kernels_*.py tests/ext/test_engine.py tests/ext/test_s*.py tests/ext/test_places.py)
small+=(tests/ext/test_messages.py tests/ext/test_collate.py tests/executor/test_changing_sizes.py)
small+=(tests/executor/test_unusual_arrays.py tests/executor/test_declared.py tests/fluid/io/test_hostile_files.py)
case "${1:-all}" in
    small) run+=("${small[@]}") ;;
    refused)
        shift # the kernels of test_states.py are in Python, which may be gone before what they have made
        export REFUSED=$build/refused_memory.so
        ${CXX:-g++} -std=c++17 -shared -fPIC -O1 tests/refused_memory.cc -o "$REFUSED" -ldl
        run+=(-p tests.refused_memory --deselect tests/ext/test_states.py "${@:-${small[@]}}") ;;
    all)
        run+=(-m 'not cuda' --ignore=tests/ext/test_queue_sanitizer.py tests/ext tests/executor tests/eager tests/ops)
        run+=(tests/fluid/io tests/fluid/optimizer tests/fluid/dygraph tests/reader/test_loader_workers.py) ;;
    fuzz) run=(tests/fluid/io/hostile.py --count "${2:-1000}") ;;
    *) run+=("$@") ;;
esac

# libstdc++ is loaded with them, so that exceptions thrown in extensions are seen. What the interpreter and other libraries
# do not give back at their end is not looked for.
libraries=
for name in libasan.so libubsan.so libstdc++.so; do libraries+="$(gcc -print-file-name=$name) "; done
cd "$build"
export PYTHONPATH="$build/lib" PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096
export UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD=$libraries exec "$python" "${run[@]}"
