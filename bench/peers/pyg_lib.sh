#!/bin/sh
# Builds pyg-lib, PyG's sampler (temporal batches need it), from a folder of sources and installs it for a Python that has torch.
#
# usage: bench/peers/pyg_lib.sh SOURCES PYTHON
#
# SOURCES holds, each in a folder of its own, pyg-lib (https://github.com/pyg-team/pyg-lib; measured with 0.9.0),
# parallel-hashmap (https://github.com/greg7mdp/parallel-hashmap) and, where torch has CUDA that works here, cutlass
# (https://github.com/NVIDIA/cutlass).  Nothing in SOURCES is written.  METIS, which only partitions, is left out.
# PYTHON has torch, setuptools, wheel and, to build faster, ninja.  About ten minutes on two cores.
set -eu
[ $# = 2 ] || { sed -n '2,4p' "$0" >&2; exit 2; }
sources=$(cd "$1" && pwd) python=$2
for d in pyg-lib parallel-hashmap; do
    [ -d "$sources/$d" ] || { echo "$0: $sources has no folder $d" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$sources/pyg-lib" "$work/pyg-lib"
cd "$work/pyg-lib"

# without METIS: its switch exists in config.h.in, its build is the block of CMakeLists.txt that names its folder
sed -i -e 's/^set(NO_METIS 0)/set(NO_METIS 1)/' -e '/^if (NOT MSVC)$/,/^endif()$/{/METIS\|GKLIB\|metis/d;}' CMakeLists.txt
grep -q '^set(NO_METIS 1)' CMakeLists.txt || { echo "$0: this pyg-lib has no switch for METIS" >&2; exit 1; }

export EXTERNAL_PHMAP_INCLUDE_DIR="$sources/parallel-hashmap"
if [ -d "$sources/cutlass/include" ]; then
    export EXTERNAL_CUTLASS_INCLUDE_DIR="$sources/cutlass/include"
fi
# cmake asks nothing of an nvcc that is newer than it, where the architectures are given; no CUDA is compiled
export TORCH_CUDA_ARCH_LIST="${TORCH_CUDA_ARCH_LIST:-8.0}"
# the wheel is made with the compiler's flags of this machine, as the measured programs are
CXXFLAGS="${CXXFLAGS:--O3 -march=native}" PATH="$(dirname "$python"):$PATH" "$python" -m pip install -q --no-build-isolation --no-deps .
cd /
"$python" -c 'import pyg_lib, torch_geometric.typing as t; assert t.WITH_PYG_LIB; print("pyg-lib", pyg_lib.__version__)'
