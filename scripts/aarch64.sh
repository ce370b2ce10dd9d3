#!/usr/bin/env bash
# Builds the extensions for AArch64 by a cross compiler, in a folder of their own, and runs tests with them in an emulator.
#
#   scripts/aarch64.sh            tests of kernels and the other extensions, and the tutorial of the Fluid guide
#   scripts/aarch64.sh TESTS...   these arguments of pytest
#
# It needs Debian or what is like it, with aarch64-linux-gnu-g++ (g++-aarch64-linux-gnu) and qemu-aarch64 (qemu-user), and the version
# of Python that this has. A Python for AArch64 is fetched into the folder, not installed; NumPy and others come as wheels.
#
# environment: PYTHON, whose packages include those that building needs; BUILD, the folder (build/aarch64).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
build=$(realpath -m "${BUILD:-build/aarch64}")
version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
root=$build/debian site=$build/site
include=$root/usr/include

for tool in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || { echo "there is no $tool"; exit 1; }
done

if [ ! -x "$root/usr/bin/python" ]; then
    mkdir -p "$build"/apt/{lists,cache/archives}/partial "$root"
    touch "$build/apt/status"
    cat >"$build/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State::lists "$build/apt/lists";
Dir::State::status "$build/apt/status";
Dir::Cache "$build/apt/cache";
EOF
    export APT_CONFIG="$build/apt.conf"
    apt-get update -qq
    apt-get install -qq --download-only --no-install-recommends "python$version" "libpython$version-dev" libstdc++6
    unset APT_CONFIG
    for package in "$build"/apt/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
    # By this name it is sys.executable, and starts children in the emulator as well.
    cat >"$root/usr/bin/python" <<EOF
#!/bin/sh
exec qemu-aarch64 -cpu max,sve=off -L "$root" -0 "\$0" "$root/usr/bin/python$version" "\$@"
EOF
    chmod +x "$root/usr/bin/python"
fi
if [ ! -d "$site/numpy" ]; then
    platforms=()
    for name in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do platforms+=(--platform "${name}_aarch64"); done
    "$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$site" --only-binary=:all: \
        "${platforms[@]}" --python-version "$version" numpy scipy protobuf six tqdm pytest hypothesis
fi

mkdir -p "$build/config"
cp "$root/usr/lib/python$version"/_sysconfigdata__aarch64-linux-gnu.py "$build/config"
CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
    LDSHARED='aarch64-linux-gnu-gcc -shared' LDCXXSHARED='aarch64-linux-gnu-g++ -shared' \
    CPPFLAGS="-I$include/python$version -I$site/numpy/_core/include -idirafter $include" \
    _PYTHON_HOST_PLATFORM=linux-aarch64 _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu PYTHONPATH="$build/config" \
    "$python" setup.py -q build_ext --build-lib "$build/lib" --build-temp "$build/temp"
tar --create --exclude='*.so' --exclude='*.cpp' --exclude=__pycache__ fluidlite | tar --extract --directory="$build/lib"
tar --create --exclude=__pycache__ tests examples scripts docs pyproject.toml README.md | tar --extract --directory="$build"

cd "$build"
export PYTHONPATH="$build/lib:$site"
pytest=("$root/usr/bin/python" -m pytest -q -p no:cacheprovider --hypothesis-profile=ci)
if [ $# -gt 0 ]; then
    exec "${pytest[@]}" "$@"
fi
"${pytest[@]}" --ignore=tests/ext/test_queue_sanitizer.py tests/ext
exec "$root/usr/bin/python" -m fluidlite examples/mnist_dataloader.py
