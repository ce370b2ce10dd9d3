#!/usr/bin/env bash
# Checks the GPU backend without a network, in stages, each bounded in time. Uses what is installed: a CuPy (12x or 13x, any
# version from 13 on), Cython, SciPy and pytest must be; with pytest-xdist the tests run in several processes; PyTorch is
# measured beside fluidlite if it is there.
#
#   scripts/gpu_check.sh [--try] [--only STAGE]... [FOLDER]
#
#   build     builds the package in place; left out if the extensions load       up to 600 s
#   smoke     scripts/gpu_smoke.py: the guide's example, the double buffer, graphs      280 s
#   test      all tests marked `cuda` but the recorded programs; failures again, alone  300 + 75 s
#   recorded  the recorded programs (tests/conformance), in 8 processes                 180 s
#   bench     loader, tutorial, steps beside PyTorch                                    360 s
#
# FOLDER (default: gpu-check) gets the logs and report.md, complete after each stage. The list of files that have such tests,
# FOLDER/files.txt, is made where it is missing, which takes half a minute: make it before where minutes count, by
# `--try --only list`. --try goes through all on a machine without a GPU: the simulated one, benchmarks on the CPU. PYTHON
# chooses the interpreter, WORKERS the number of processes, FLUIDLITE_DATA names the folder with all of MNIST, CUPY_CACHE_DIR
# a folder with compiled kernels. The exit status is 0 if all stages but the benchmarks are good.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3} place=gpu out=gpu-check stages=()
while [ $# -gt 0 ]; do
    case $1 in
        --try) place=cpu ;;
        --only) stages+=("${2-}"); shift ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
        -*) echo "unknown option $1; see --help" >&2; exit 2 ;;
        *) out=$1 ;;
    esac
    shift
done
[ ${#stages[@]} -gt 0 ] || stages=(build smoke test recorded bench)
for stage in "${stages[@]}"; do
    case $stage in
        list | build | smoke | test | recorded | bench) ;;
        *) echo "--only takes list, build, smoke, test, recorded or bench, got '$stage'" >&2; exit 2 ;;
    esac
done

mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd) report=$out/report.md status=0
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
# Plugins of other packages turn their warnings into errors of ours.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
export FLUIDLITE_TEST_REAL_GPU=$([ "$place" = gpu ] && echo 1 || echo 0)
pytest=("$python" -m pytest -q -p no:cacheprovider)
say() { printf '\n== %s (at %d s)\n' "$1" "$SECONDS"; }
report() { printf '\n## %s\n\n%s\n' "$1" "$2" | tee -a "$report"; }

run_list() {
    [ -s "$out/files.txt" ] && return
    "${pytest[@]}" -m cuda --collect-only tests 2>"$out/list.log" | sed -n 's/::.*//p' | sort -u |
        grep -v conformance >"$out/files.txt"
}

run_build() {
    "$python" -c 'import fluidlite._ext.kernels, fluidlite._ext.engine' 2>/dev/null && return
    timeout 600 "$python" setup.py build_ext --inplace >"$out/build.log" 2>&1 && return
    tail -30 "$out/build.log"
    echo "The build failed; all that it said is in $out/build.log."
    exit 1
}

run_smoke() {
    local simulated=()
    [ "$place" = gpu ] || simulated=(--simulated)
    timeout 280 "$python" scripts/gpu_smoke.py "${simulated[@]}" --json "$out/smoke.json" >"$out/smoke.log" 2>&1 || status=1
    report Smoke "$(grep -E '^(good|BAD )' "$out/smoke.log")"
    [ -s "$out/smoke.json" ] || tail -30 "$out/smoke.log" # it crashed: faulthandler says where
}

run_test() {
    run_list
    local files workers=() failed
    mapfile -t files <"$out/files.txt"
    if "$python" -c 'import xdist' 2>/dev/null; then
        workers=(-p xdist.plugin -n "${WORKERS:-12}" --dist worksteal)
    fi
    timeout -s INT -k 10 300 "${pytest[@]}" "${workers[@]}" -m cuda --durations=8 "${files[@]}" >"$out/tests.log" 2>&1 || status=1
    report Tests "$(tail -1 "$out/tests.log")"
    mapfile -t failed < <(grep -E '^(FAILED|ERROR) ' "$out/tests.log" | sed 's/ - .*//' | cut -d' ' -f2- | sort -u | head -150)
    [ ${#failed[@]} -gt 0 ] || return
    timeout -s INT -k 10 75 "${pytest[@]}" --tb=short "${failed[@]}" >"$out/again.log" 2>&1
    report 'Failed tests once more, alone' "$(grep -E '^(FAILED|ERROR) |passed|failed' "$out/again.log" | cut -c1-230)"
}

run_recorded() {
    local names part k i
    mapfile -t names < <(cd tests/conformance/cases && ls ./*.py | sed 's/^..//;s/\.py$//')
    for k in 0 1 2 3 4 5 6 7; do
        part=()
        for ((i = k; i < ${#names[@]}; i += 8)); do part+=("${names[i]}"); done
        FLUIDLITE_STRICT=1 timeout 180 "$python" -m fluidlite tests/conformance/check.py tests/conformance/cases tests/conformance/npz \
            --preload on_gpu:start --json "$out/recorded-$k.json" --only "${part[@]}" >"$out/recorded-$k.log" 2>&1 &
    done
    wait
    "$python" - "$out"/recorded-*.json >"$out/recorded.txt" <<'PYTHON' || status=1
import json, sys
from tests.conformance.test_conformance import CASES, ON_GPU
cases = [case for name in sys.argv[1:] for case in json.load(open(name))["cases"]]
wrong = [
    case for case in cases
    if {text.partition(":")[0] for text in case["wrong"]} != ON_GPU.get(case["case"], set()) or case.get("traceback")
]
print(f"{len(cases)} of {len(CASES)} recorded programs ran, {len(wrong)} are wrong")
for case in wrong[:40]:
    print(" ", case["case"], (case["reason"] or "")[:160], (case.get("traceback") or "").strip()[-160:])
sys.exit(bool(wrong) or len(cases) < len(CASES))
PYTHON
    report 'Recorded programs' "$(cat "$out/recorded.txt")"
}

measure() { # seconds, title, script, arguments...
    local seconds=$1 title=$2 script=$3
    shift 3
    local log="$out/$script-${title// /-}"
    timeout "$seconds" "$python" "benchmarks/$script.py" --place "$place" --rounds 1 --json "$log.json" "$@" >"$log.log" 2>&1 ||
        tail -5 "$log.log"
    report "$title" "$(grep '^|' "$log.log")"
}

run_bench() {
    measure 60 Loader gpu_loader --batches 60
    measure 60 'The tutorial' gpu_tutorial --epochs 2
    measure 120 Steps gpu_steps --seconds 0.3 --only 'five 8x8' --only mlp --only lenet --mode PyTorch --mode 'torch CUDA graph'
    [ "$place" = cpu ] || measure 120 ResNets gpu_steps --seconds 0.5 --only resnet-20 --only resnet-50 --mode PyTorch
}

: >"$report"
for stage in "${stages[@]}"; do
    say "$stage"
    "run_$stage"
done
say "done: $report"
exit "$status"
