"""Build the libraries of compiled kernels that wheels carry: `make kernels`, or `python requirements/kernels.py`.

    1  numba compiles all kernels to one LLVM module, in a process per core
    2  LLVM emits it for each level of each target, and Zig links a shared library of each target

Needs the packages of requirements/kernels.txt, on x86-64. The libraries are written to constrain/kernels/libraries and
are not committed; equal sources give equal libraries, byte for byte, with these versions and the same version of
Python. Prints the size and the SHA-256 of each; `--check` compares, and exits with 1 if one differs.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from constrain.kernels.jit.precompile import build_module
from constrain.kernels.jit.targets import TARGETS, emit_head, emit_level, link_for_release
from constrain.kernels.native.native_library import LIBRARIES, SUFFIX, compute_source_hash


def print_progress(done: int, count: int) -> None:
    """Print how many kernels are compiled."""
    if done in (0, count):
        print(f"kernels: {done} of {count} compiled", file=sys.stderr, flush=True)


def build_libraries(names: Iterable[str], module: bytes) -> dict[str, bytes]:
    """Return the library of each target."""
    source_hash, found = compute_source_hash(), {}
    for target in map(TARGETS.__getitem__, names):
        levels = [emit_level(target, level, module) for level in range(len(target.levels))]
        found[target.name] = link_for_release(target, [emit_head(target, source_hash), *levels])
        print(f"kernels: {target.name} linked", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Build the libraries. Return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--to", type=Path, default=LIBRARIES, help="the folder for the libraries")
    parser.add_argument(
        "--check", action="store_const", const="check", help="compare with the libraries that are there"
    )
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"which, of {', '.join(TARGETS)}")
    options = parser.parse_args()
    libraries = build_libraries(options.targets.split(","), build_module(print_progress))
    options.to.mkdir(parents=True, exist_ok=True)
    different = 0
    for name, library in libraries.items():
        path, zipped = options.to / f"{name}{SUFFIX}", len(zlib.compress(library, 9))
        print(f"{name:16} {len(library):9,} bytes, {zipped:9,} zipped, SHA-256 {sha256(library).hexdigest()}")
        if not options.check:
            path.write_bytes(library)
        elif not path.exists() or path.read_bytes() != library:
            print(f"{name:16} differs from {path}")
            different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
