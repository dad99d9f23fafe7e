"""Hostile environments of the store on disk: forks, damaged and foreign files, a full disk, no writable folder.

Scenarios are functions as in `scenarios.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import constrain
from constrain import Constraint

from .answers import BYTES, WrongAnswer

__all__ = [
    "NEEDS_KERNELS",
    "Scenario",
    "build_damaged_kernels",
    "build_damaged_store",
    "check_forked_children",
    "check_full_disk",
    "check_missing_home",
    "check_pickles_in_store",
    "check_world_writable_store",
    "flip_bit",
    "replace_with_fifo",
    "replace_with_link",
    "truncate_to_half",
    "truncate_to_ten_bytes",
]

Scenario = Callable[[], None]
ROOT = Path(__file__).resolve().parent.parent.parent
NEEDS_KERNELS = 300.0
"""CPU seconds of scenarios in which kernels are compiled again."""


@contextmanager
def make_store(*names: str) -> Iterator[list[Path]]:
    """Create empty private folders for the block, by default one named "store"."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in names or ("store",)]
        for path in paths:
            path.mkdir(mode=0o700)
        yield paths


def digest_masks(constraint: Constraint, text: bytes) -> str:
    """Return a digest of all masks along a text."""
    digest = hashlib.sha256()
    matcher = constraint.matcher()
    for at in range(len(text)):
        digest.update(matcher.mask().tobytes())
        matcher.advance_bytes(text[at : at + 1])
    digest.update(matcher.mask().tobytes())
    return digest.hexdigest()


# ---- 1.1, processes -----------------------------------------------------------------------------------------------


def check_forked_children() -> None:
    """Compile different schemas in forked children after a warm-up; masks must equal those made without a fork."""
    cases = [
        (
            {"type": "object", "properties": {f"k{i}": {"type": kind}}, "required": [f"k{i}"]},
            json.dumps({f"k{i}": value}).encode(),
        )
        for i, (kind, value) in enumerate(
            (("string", "ab" * 40), ("integer", 12345), ("array", [1, [2, "x"]]), ("boolean", True))
        )
    ]
    constrain.compile(BYTES, schema={"type": "string"}).matcher().mask()
    constrain.warm_up(BYTES)
    shared = constrain.compile(BYTES, schema={"type": ["object", "array", "string", "number"]})
    wanted = [
        (digest_masks(constrain.compile(BYTES, schema=schema), text), digest_masks(shared, text))
        for schema, text in cases
    ]
    children = []
    for (schema, text), expected in zip(cases, wanted):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                again = [
                    (digest_masks(constrain.compile(BYTES, schema=schema), text), digest_masks(shared, text))
                    for _ in range(20)
                ]
                code = 0 if set(again) == {expected} else 3
            finally:
                os._exit(code)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    if any(codes):
        raise WrongAnswer(f"exit codes of the children: {codes}")


# ---- 1.2, files ---------------------------------------------------------------------------------------------------

USES_STORE = """
import hashlib, json, sys, time
import constrain
from constrain import Vocabulary
v = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"ab", b'":', None], eos_ids=[258])
digest = hashlib.sha256()
for made, text in (
    (constrain.compile(v, schema={"type": "object", "properties": {"a": {"type": "integer"}}}), b'{"a": 12}'),
    (constrain.compile(v, grammar='start: "a" start "b" | NUMBER\\n%import common.NUMBER\\n'), b"a12b"),
    (constrain.compile(v, regex="(ab|a)+c"), b"abac"),
):
    matcher = made.matcher()
    for at in range(len(text)):
        digest.update(matcher.mask().tobytes())
        matcher.advance_bytes(text[at:at + 1])
time.sleep(1)  # files are written a moment later
print(digest.hexdigest())
"""


def run_in_new_process(code: str, wall: float = 60.0, **environment: str) -> str:
    """Run `code` in a new Python and return its output. Raise WrongAnswer if it fails or takes longer
    than `wall` seconds.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=wall,
            cwd=ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WrongAnswer(f"does not end within {wall:.0f} s") from None
    if done.returncode:
        name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit {done.returncode}"
        raise WrongAnswer(f"{name}: {(done.stderr.strip().splitlines() or [''])[-1][:200]}")
    return done.stdout


def build_damaged_store(damage: Callable[[Path], None]) -> Scenario:
    """Return a scenario: after all files of a store are damaged, the next process must make the same masks."""

    def scenario() -> None:
        with make_store() as (store,):
            wanted = run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store))
            for path in sorted(store.rglob("*")):
                if path.is_file():
                    damage(path)
            found = run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store))
            if found != wanted:
                raise WrongAnswer("the masks differ")

    return scenario


def truncate_to_half(path: Path) -> None:
    """Truncate a file to half its size."""
    os.truncate(path, path.stat().st_size // 2)


def truncate_to_ten_bytes(path: Path) -> None:
    """Truncate a file to ten bytes."""
    os.truncate(path, min(10, path.stat().st_size))


def flip_bit(path: Path) -> None:
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))


def replace_with_link(path: Path) -> None:
    """Replace a file with a symbolic link to another one."""
    path.unlink()
    path.symlink_to("/etc/passwd")


def replace_with_fifo(path: Path) -> None:
    """Replace a file with a FIFO, which blocks a process that opens it."""
    path.unlink()
    os.mkfifo(path)


def check_world_writable_store() -> None:
    """Make a store writable by anyone: files in it must not be read, nor written unless its mode is unchanged."""
    with make_store() as (store,):
        wanted = run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store))
        names = {path: path.stat().st_atime_ns for path in store.rglob("*") if path.is_file()}
        for path in names:
            path.chmod(0o666)
            truncate_to_half(path)
        store.chmod(0o777)
        if run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store)) != wanted:
            raise WrongAnswer("the masks differ")
        left = [
            path.name
            for path in names
            if path.exists() and path.stat().st_mode & 0o022 and path.stat().st_size > 16 * 1_024
        ]
        if left and not is_writable_by_others(store):
            raise WrongAnswer(f"a folder of mode 0777 is written to: {left[:2]}")


def is_writable_by_others(store: Path) -> bool:
    """Return whether group or others may write to the store."""
    return store.stat().st_mode & 0o022 != 0


SET_KERNEL_FOLDER = """
from pathlib import Path
from constrain.kernels.native import library_cache, native_library
native_library.LIBRARIES = folder = Path({folder!r})
library_cache.find_folder = lambda source_hash: (folder / source_hash, folder)
"""
"""Code that makes a process read and write compiled kernels in a folder of its own."""


def build_damaged_kernels(damage: Callable[[Path], None]) -> Scenario:
    """Return a scenario: damaged kernels must be compiled again, not executed."""

    def scenario() -> None:
        with make_store("store", "kernels") as (store, kernels):
            code = SET_KERNEL_FOLDER.format(folder=str(kernels)) + USES_STORE
            wanted = run_in_new_process(code, NEEDS_KERNELS, CONSTRAIN_STORE=str(store))
            for path in [*kernels.rglob("*"), *store.rglob("*")]:
                if path.is_file() and not path.is_symlink():
                    damage(path)
            if run_in_new_process(code, NEEDS_KERNELS, CONSTRAIN_STORE=str(store)) != wanted:
                raise WrongAnswer("the masks differ")

    return scenario


# ---- 3 and later ----------------------------------------------------------------------------------------------------


def check_full_disk() -> None:
    """Limit the size of files: masks must be the same, no exception is raised and no partial file is left."""
    with make_store("store", "other") as (store, other):
        wanted = run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(other))
        whole = {path.relative_to(other): path.stat().st_size for path in other.rglob("*") if path.is_file()}
        code = (
            "import resource, signal\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        )
        if run_in_new_process(code + USES_STORE, CONSTRAIN_STORE=str(store)) != wanted:
            raise WrongAnswer("the masks differ")
        parts = [path.name for path in store.rglob("*") if path.is_file() and not is_whole(path, store, whole)]
        if parts:
            raise WrongAnswer(f"leaves partial files: {parts[:3]}")


def is_whole(path: Path, store: Path, whole: dict[Path, int]) -> bool:
    """Return whether a file has the same name and size as in a store on a disk with free space."""
    return whole.get(path.relative_to(store)) == path.stat().st_size


def check_missing_home() -> None:
    """Compile without HOME and without a writable store."""
    run_in_new_process("import os\nos.environ.pop('HOME', None)\n" + USES_STORE, CONSTRAIN_STORE="/proc/nowhere")


def check_pickles_in_store() -> None:
    """Replace all files of a store with pickles, which must not be loaded (CVE-2025-69872 of diskcache)."""
    with make_store() as (store,):
        run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store))
        bad = b"cos\nsystem\n(S'touch " + str(store.with_name("owned")).encode() + b"'\ntR."
        for path in [path for path in store.rglob("*") if path.is_file()]:
            path.write_bytes(bad)
        run_in_new_process(USES_STORE, CONSTRAIN_STORE=str(store))
        if store.with_name("owned").exists():
            raise WrongAnswer("a pickle in the store is executed")
