#!/usr/bin/env bash
# Checks the GPU backend in one call, without a network: builds the package in place, runs all tests marked `cuda` on the
# real GPU, measures, and puts the tables together. Uses what is installed: a CuPy (12x or 13x, any version from 13 on),
# Cython, SciPy and pytest must be; PyTorch is measured beside fluidlite if it is there.
#
#   scripts/gpu_check.sh [--try] [--quick] [--only build|test|bench]... [FOLDER]
#
# FOLDER (default: gpu-check) gets the logs, a JSON file for each benchmark, and report.md. --quick measures for a shorter
# time. --try goes through everything on a machine without a GPU: the tests run on the simulated one, the benchmarks on
# the CPU. PYTHON chooses the interpreter, FLUIDLITE_DATA names the folder with all of MNIST.
# The exit status is 0 if the build and the tests are good; a benchmark that fails is told in the report.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
place=gpu quick=0 out=gpu-check stages=()
while [ $# -gt 0 ]; do
    case $1 in
        --try) place=cpu ;;
        --quick) quick=1 ;;
        --only) stages+=("${2:?--only takes build, test or bench}"); shift ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
        -*) echo "unknown option $1; see --help" >&2; exit 2 ;;
        *) out=$1 ;;
    esac
    shift
done
for stage in "${stages[@]}"; do
    case $stage in build | test | bench) ;; *) echo "--only takes build, test or bench, got '$stage'" >&2; exit 2 ;; esac
done
wanted() { [ ${#stages[@]} -eq 0 ] || [[ " ${stages[*]} " == *" $1 "* ]]; }

mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
report=$out/report.md
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
status=0
say() { printf '== %s (%d s)\n' "$1" "$SECONDS"; }

if wanted build; then
    say 'build'
    if ! "$python" setup.py build_ext --inplace >"$out/build.log" 2>&1; then
        tail -30 "$out/build.log"
        exit 1
    fi
fi

say 'the machine'
if [ "$place" = gpu ]; then
    export FLUIDLITE_REQUIRE_GPU=1 FLUIDLITE_TEST_REAL_GPU=1
    device=$("$python" -c 'from fluidlite.backend.cupy_ import library; print(library.describe())' 2>"$out/device.log") || {
        tail -1 "$out/device.log"
        echo 'This check needs a GPU; --try goes through it without one.'
        exit 1
    }
else
    device='no GPU: tests on the simulated one, benchmarks on the CPU'
fi
versions=$("$python" - <<'PYTHON'
import importlib
import platform
found = [f"Python {platform.python_version()}"]
for name in ("numpy", "scipy", "torch"):
    try:
        found.append(f"{name} {importlib.import_module(name).__version__}")
    except ImportError:
        found.append(f"no {name}")
print(", ".join(found))
PYTHON
)
echo "$device; $versions"
printf '%s\n\n%s.\n' "$device" "$versions" >"$report"

if wanted test; then
    say 'tests'
    "$python" -m pytest -m cuda -q -p no:cacheprovider 2>&1 | tee "$out/tests.log" | tail -40 || status=1
    printf '\nTests (`pytest -m cuda`): %s\n' "$(tail -1 "$out/tests.log")" >>"$report"
fi

measure() { # title, script, arguments...
    local title=$1 script=$2
    shift 2
    say "$title"
    printf '\n## %s\n\n    python benchmarks/%s.py %s\n\n' "$title" "$script" "$*" >>"$report"
    if "$python" "benchmarks/$script.py" --json "$out/$script.json" --place "$place" "$@" >"$out/$script.log" 2>&1; then
        grep '^|' "$out/$script.log" | tee -a "$report"
    else
        tail -15 "$out/$script.log"
        echo "failed; the end of what it printed: $(tail -1 "$out/$script.log")" >>"$report"
    fi
}

if wanted bench; then
    rounds=3 seconds=1 epochs=5
    [ "$quick" = 1 ] && rounds=1 seconds=0.3 epochs=2
    for network in 'five 8x8' mlp lenet resnet-20 resnet-50; do
        [ "$place" = cpu ] && [[ $network == resnet* ]] && continue
        networks+=(--only "$network")
    done
    measure 'Steps' gpu_steps --rounds "$rounds" --seconds "$seconds" "${networks[@]}"
    measure 'The tutorial' gpu_tutorial --rounds "$rounds" --epochs "$epochs"
    measure 'Loaders' gpu_loader --rounds "$rounds"
fi

say "done: $report"
exit "$status"
