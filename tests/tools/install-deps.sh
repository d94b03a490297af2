#!/bin/sh
# Installs what gnnc needs to build and to be tested, on Debian 12 or later.
#   install-deps.sh build   what `make demo` needs
#   install-deps.sh test    that, and what `make test` needs
# Nothing missing: no apt call.  Without root or without a network: prints the one
# apt line to run and stops with exit 2.
set -u
build="gcc libc6-dev make flex bison llvm-19-dev libdnnl-dev zlib1g-dev"
tests="$build llvm-19-tools clang-19 libclang-rt-19-dev clang-format-19 g++ python3"
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
        make | flex | bison | python3 | g++) has_one_of "$1" ;;
        llvm-19-dev) has_one_of llvm-config-19 llvm-config-20 llvm-config-18 ;;
        llvm-19-tools) has_one_of FileCheck-19 FileCheck-20 FileCheck-18 ;;
        clang-19 | clang-format-19) has_one_of "$1" ;;
        libdnnl-dev) exists_one_of /usr/include/oneapi/dnnl/dnnl.h /usr/include/cblas.h /usr/include/*/cblas.h ;;
        *) false ;;
    esac >/dev/null 2>&1
}
missing=
for p in $want; do
    brought "$p" && continue
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -z "$missing" ] && exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
    echo "gnnc: these packages are missing; as root, run:" >&2
    echo "    $line" >&2
    exit 2
fi
echo "gnnc: $line" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of words is meant
{ $line >&2 || { apt-get update >&2 && $line >&2; }; } && exit 0
echo "gnnc: the packages could not be installed; with a network and as root, run:" >&2
echo "    apt-get update && $line" >&2
exit 2
