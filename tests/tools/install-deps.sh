#!/bin/sh
# Installs what gnnc needs to build and to be tested, on Debian 12 or later.
#   install-deps.sh build   what `make demo` needs
#   install-deps.sh test    that, and what `make test` needs
# `test` also tries to bring chromium, a download of 124 MB: without it the page of --emit=html is not looked at.
# Where GNNC_CI is set, `test` also brings nvcc from PyPI into build/cuda if there is none: with it
# tests/cudasim/nvcc checks the emitted kernels, which other machines skip; and pyarrow into build/pyarrow.
# Nothing missing: no apt call.  Without root or without a network: prints the one
# apt line to run and stops with exit 2.
set -u
build="gcc libc6-dev make flex bison llvm-19-dev libdnnl-dev zlib1g-dev libmetis-dev libsqlite3-dev libpq-dev libpng-dev libjpeg-dev libyaml-dev"
tests="$build llvm-19-tools clang-19 libclang-rt-19-dev clang-format-19 g++ cmake pkg-config abigail-tools postgresql locales neovim libmicrohttpd-dev libcjson-dev libopenmpi-dev openmpi-bin rustc python3 python3-numpy${GNNC_CI:+ python3-pip}"
case "${1:-build}" in
    build) want=$build ;;
    test) want=$tests ;;
    *) echo "usage: $0 build|test" >&2; exit 2 ;;
esac

# A package is needed when dpkg does not know it as installed, unless the thing it
# brings is there from elsewhere (a toolchain built by hand, a neighbouring version).
has_one_of() { for c in "$@"; do command -v "$c" && return; done; return 1; }
exists_one_of() { for f in "$@"; do [ -e "$f" ] && return; done; return 1; }
brought() {
    case $1 in
        gcc) has_one_of cc ;;
        make | flex | bison | python3 | rustc | g++ | cmake | pkg-config) has_one_of "$1" ;;
        abigail-tools) has_one_of abidiff ;;
        neovim) has_one_of nvim ;;
        locales) exists_one_of /usr/share/i18n/locales/de_DE ;;
        python3-pip) python3 -m pip --version ;;
        python3-numpy) python3 -c 'import numpy' || /usr/bin/python3 -c 'import numpy' ;;
        llvm-19-dev) has_one_of llvm-config-19 llvm-config-20 llvm-config-18 ;;
        llvm-19-tools) has_one_of FileCheck-19 FileCheck-20 FileCheck-18 ;;
        clang-19 | clang-format-19) has_one_of "$1" ;;
        libdnnl-dev) exists_one_of /usr/include/oneapi/dnnl/dnnl.h /usr/lib/libopenblas.so /usr/lib*/*/libopenblas.so ;; # no other cblas
        libpq-dev) exists_one_of /usr/include/postgresql/libpq-fe.h /usr/include/libpq-fe.h ;;
        postgresql) exists_one_of /usr/lib/postgresql/*/bin/initdb ;;
        libpng-dev) exists_one_of /usr/include/png.h ;;
        libjpeg-dev) exists_one_of /usr/include/jpeglib.h ;;
        libyaml-dev) exists_one_of /usr/include/yaml.h ;;
        libsqlite3-dev) exists_one_of /usr/include/sqlite3.h ;;
        libmetis-dev) exists_one_of /usr/include/metis.h /usr/include/*/metis.h ;;
        libopenmpi-dev) has_one_of mpicc ;;
        openmpi-bin) has_one_of mpirun ;;
        *) false ;;
    esac >/dev/null 2>&1
}
nvcc_packages="nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl"
bring_nvcc() {
    [ -n "${GNNC_CI:-}" ] && [ "${1:-build}" = test ] || return 0
    top=$(cd "$(dirname "$0")/../.." && pwd)
    has_one_of "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" nvcc >/dev/null && return 0
    exists_one_of "$top"/build/cuda/nvidia/cu*/bin/nvcc >/dev/null && return 0
    # one version of all: nvcc refuses the headers of another
    for p in $nvcc_packages; do wanted="${wanted:-} $p==13.0.*"; done
    # shellcheck disable=SC2086
    python3 -m pip install -q --target "$top/build/cuda" $wanted >&2 && chmod +x "$top"/build/cuda/nvidia/cu*/bin/* ||
        echo "gnnc: no nvcc could be had from PyPI; the checks that need one will fail" >&2
}
# Without it tests/e2e/relbench.py has nothing that reads Parquet.
bring_pyarrow() {
    [ -n "${GNNC_CI:-}" ] && [ "${1:-build}" = test ] || return 0
    top=$(cd "$(dirname "$0")/../.." && pwd)
    PYTHONPATH="$top/build/pyarrow" python3 -c 'import pyarrow' 2>/dev/null && return 0
    python3 -m pip install -q --no-deps --target "$top/build/pyarrow" pyarrow >&2 ||
        echo "gnnc: no pyarrow could be had from PyPI; what reads Parquet is not tested" >&2
}
bring_browser() {
    [ "${1:-build}" = test ] && [ "$(id -u)" = 0 ] || return 0
    has_one_of chromium >/dev/null && return 0
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium >&2 ||
        echo "gnnc: no chromium could be had; the page of --emit=html is not looked at" >&2
}
missing=
for p in $want; do
    brought "$p" && continue
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -z "$missing" ] && { bring_nvcc "$@"; bring_pyarrow "$@"; bring_browser "$@"; exit 0; }

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
    echo "gnnc: these packages are missing; as root, run:" >&2
    echo "    $line" >&2
    exit 2
fi
echo "gnnc: $line" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of words is meant
{ $line >&2 || { apt-get update >&2 && $line >&2; }; } && { bring_nvcc "$@"; bring_pyarrow "$@"; bring_browser "$@"; exit 0; }
echo "gnnc: the packages could not be installed; with a network and as root, run:" >&2
echo "    apt-get update && $line" >&2
exit 2
