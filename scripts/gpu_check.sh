#!/usr/bin/env bash
# Checks the GPU backend in one call, without a network: builds the package in place, runs all tests marked `cuda` on the
# real GPU, measures, and puts the tables together. Uses what is installed: a CuPy (12x or 13x, any version from 13 on),
# Cython, SciPy and pytest must be; PyTorch is measured beside fluidlite if it is there.
#
#   scripts/gpu_check.sh [--try] [--quick] [--only build|test|bench]... [--shard K/N] [FOLDER]
#
# FOLDER (default: gpu-check) gets the logs, a JSON file for each benchmark, and report.md. --quick measures for a shorter
# time. --try goes through everything on a machine without a GPU: the tests run on the simulated one, the benchmarks on
# the CPU. PYTHON chooses the interpreter, FLUIDLITE_DATA names the folder with all of MNIST.
#
# On a new machine the tests compile some 700 kernels, which CuPy then keeps on disk. Where a command may only take some
# minutes, give each stage a call of its own; --shard 1/2 and --shard 2/2 run every second file of tests.
# The exit status is 0 if the build and the tests are good; a benchmark that fails is told in the report.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
place=gpu quick=0 out=gpu-check shard=1/1 stages=()
while [ $# -gt 0 ]; do
    case $1 in
        --try) place=cpu ;;
        --quick) quick=1 ;;
        --only) stages+=("${2-}"); shift ;;
        --shard) shard=${2-}; shift ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
        -*) echo "unknown option $1; see --help" >&2; exit 2 ;;
        *) out=$1 ;;
    esac
    shift
done
for stage in "${stages[@]}"; do
    case $stage in build | test | bench) ;; *) echo "--only takes build, test or bench, got '$stage'" >&2; exit 2 ;; esac
done
if ! [[ $shard =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || ((BASH_REMATCH[1] > BASH_REMATCH[2])); then
    echo "--shard takes a part and the number of parts, such as 1/2, got '$shard'" >&2
    exit 2
fi
part=${BASH_REMATCH[1]} parts=${BASH_REMATCH[2]} sharded=''
[ "$parts" -eq 1 ] || sharded=1
wanted() { [ ${#stages[@]} -eq 0 ] || [[ " ${stages[*]} " == *" $1 "* ]]; }

mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
report=$out/report.md
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
status=0 built=''
began=0
say() { printf '== %s (at %d s)\n' "$1" "$SECONDS"; began=$SECONDS; }
took() { printf '%d s' "$((SECONDS - began))"; }

if wanted build; then
    say 'build'
    if ! "$python" setup.py build_ext --inplace >"$out/build.log" 2>&1; then
        tail -30 "$out/build.log"
        echo "The build failed; all that it said is in $out/build.log."
        exit 1
    fi
    built=", built in $(took)"
fi

say 'the machine'
if [ "$place" = gpu ]; then
    export FLUIDLITE_TEST_REAL_GPU=1
    device=$("$python" - 2>"$out/device.log" <<'PYTHON'
from fluidlite.backend.cupy_ import blas, dnn_library, library
from fluidlite.backend.cupy_.device import device
print(library.describe(), end="; ")
cudnn = dnn_library.cudnn()
print(blas.missing(device(0)) or "cuBLAS", end="; ")
print(dnn_library.problem() if cudnn is None else f"cuDNN {cudnn.cudnnGetVersion()}", end="; ")
print("NCCL" if library.nccl() else "no NCCL")
PYTHON
    ) || {
        tail -1 "$out/device.log"
        echo 'This check needs a GPU; --try goes through it without one.'
        exit 1
    }
else
    export FLUIDLITE_TEST_REAL_GPU=0
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
[ ${#stages[@]} -gt 0 ] || : >"$report" # stages of their own add to what the folder has
printf '%s\n\n%s; %s%s.\n' "$device" "$versions" "$(date -u +%F)" "$built" >>"$report"

if wanted test; then
    say 'tests'
    log=$out/tests${sharded:+-$part-of-$parts}.log
    mapfile -t files < <(find tests -name 'test_*.py' | sort | awk -v k="$part" -v n="$parts" 'NR % n == k % n')
    "$python" -m pytest -m cuda -q -p no:cacheprovider --durations=5 "${files[@]}" >"$log" 2>&1 || status=1
    tail -40 "$log"
    printf '\n## Tests%s\n\n    pytest -m cuda\n\n%s\n' "${sharded:+, part $shard}" "$(tail -1 "$log")" >>"$report"
    if grep -q '^\(FAILED\|ERROR\) ' "$log"; then
        { echo; grep '^\(FAILED\|ERROR\) ' "$log" | sed 's/^/    /'; } >>"$report"
    fi
fi

measure() { # title, script, arguments...
    local title=$1 script=$2
    shift 2
    say "$title"
    printf '\n## %s\n\n    python benchmarks/%s.py%s\n\n' "$title" "$script" "$(printf ' %q' "$@")" >>"$report"
    if "$python" "benchmarks/$script.py" --json "$out/$script.json" --place "$place" "$@" >"$out/$script.log" 2>&1; then
        grep '^|' "$out/$script.log" | tee -a "$report"
    else
        tail -15 "$out/$script.log"
        printf 'It failed; the end of what it printed:\n\n    %s\n' "$(tail -1 "$out/$script.log")" >>"$report"
    fi
    printf '\nTook %s.\n' "$(took)" >>"$report"
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
