#!/usr/bin/env bash
# Runs a command as on an older x86 processor: every library that it loads (ours, NumPy, BLAS, oneDNN, onnxruntime) sees one.
#
#   scripts/older_processor.sh avx2 python -m pytest tests/ops       # AVX2, neither AVX-512 nor VNNI
#   scripts/older_processor.sh baseline python -m pytest tests/ops   # no AVX at all
#
# Needs Linux on a processor with `cpuid_fault` in /proc/cpuinfo, and a C compiler. Children of the command see the same.
set -euo pipefail
case "${1-}" in
    avx2 | baseline) ;;
    *) echo "usage: $0 avx2|baseline COMMAND..." >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
library=$(mktemp -d)/older_processor.so
trap 'rm -rf "$(dirname "$library")"' EXIT
"${CC:-cc}" -O1 -shared -fPIC -o "$library" "$here/older_processor.c" -ldl
export OLDER_PROCESSOR=$1
shift
LD_PRELOAD="$library${LD_PRELOAD:+:$LD_PRELOAD}" "$@"
