"""Faults of the disk: the masks are the same, nothing half-written is ever read, and nothing is left lying about."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from constrain import Constraint, Vocabulary, compile, lark, warm_up
from constrain.cache import sealed_files, write_behind
from constrain.cache.cache_folder import VARIABLE, digest_code
from constrain.cache.sealed_files import TEMPORARY, prune_folder, read_sealed, write_sealed
from constrain.compilation.compile_caches import flush_caches, programs, recent
from constrain.forms import form
from constrain.kernels.native import library_cache
from constrain.vocabulary.mask_table import MaskTable
from tests.project.test_processes import forked

TOKENS: list[bytes | None] = [bytes([b]) for b in range(256)] + [f"w{k}".encode() for k in range(3_000)] + [None]
A = {"type": "string", "pattern": "^[x-z]+$"}
SCHEMA = {"type": "object", "properties": {"a": A, "b": {"type": "integer"}}, "required": ["a"]}
TEXT = b'{"a":"x","b":12}'
GRAMMAR = 'start: "x" A\nA: /[a-z]+/\n'
NOBODY = 54_321
"""A user who owns nothing and has no entry in the list of users."""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "most", 64)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


def masks() -> list[str]:
    """All that a process does: files of each kind are read, or made and written."""
    recent.clear()
    form._grammar.cache_clear()
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,))
    found = []
    for constraint, text in ((compile(vocabulary, schema=SCHEMA), TEXT), (compile(vocabulary, lark(GRAMMAR)), b"xab")):
        matcher = constraint.matcher()
        for byte in text:
            found.append(matcher.mask().tobytes().hex())
            matcher.advance(byte)
    flush_caches()
    return found


@pytest.fixture(scope="module")
def expected_masks() -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "off")
        warm_up(Vocabulary.bytes())  # so that nothing more is imported later
        return masks()


@pytest.fixture
def open_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store in a folder that everybody can reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        monkeypatch.setenv(VARIABLE, f"{folder}/store")
        yield Path(folder) / "store"


def run_in_child(work: Callable[[], Any], *, before: Callable[[], Any] = lambda: None) -> Any:
    """What a child gives, in which something was done before."""

    def run() -> Any:
        before()
        return work()

    return forked(run)[0]


def list_names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


KINDS = {".program", ".table", ".parser", ".lexemes", ".rows"}


def test_second_run_reads_the_files_of_the_first(
    store: Path, expected_masks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert masks() == expected_masks
    assert {Path(name).suffix for name in list_names(store)} == KINDS
    monkeypatch.setattr(MaskTable, "prepare", lambda *_: pytest.fail("the table on disk was not used"))
    assert masks() == expected_masks


@pytest.mark.parametrize("size", [0, 1, 100, 4_000, 100_000])
def test_a_full_store(store: Path, expected_masks: list[str], size: int) -> None:
    """Files beyond some bytes cannot be written (which is an error in the middle of a write, as a full disk is)."""

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def work() -> bool:  # What is given back goes through a pipe, which has no size.
        return masks() == expected_masks

    assert run_in_child(work, before=full)
    assert not [name for name in list_names(store) if name.startswith(TEMPORARY)]
    assert all((store / name).stat().st_size <= size for name in list_names(store))
    assert masks() == expected_masks
    assert {Path(name).suffix for name in list_names(store)} == KINDS


def as_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o000, 0o555])
def test_no_right_to_read_or_write(open_store: Path, expected_masks: list[str], mode: int) -> None:
    """A store of root's: it is read where it may be, and nothing is written."""
    masks()
    for one in open_store.iterdir():
        one.chmod(0o644)
    open_store.chmod(mode)
    before = list_names(open_store)
    assert run_in_child(lambda: masks() == expected_masks, before=as_nobody)
    assert list_names(open_store) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_store_of_somebody_else_is_not_used(open_store: Path, expected_masks: list[str]) -> None:
    assert run_in_child(lambda: masks() == expected_masks, before=as_nobody)
    assert {Path(name).suffix for name in list_names(open_store)} == KINDS
    assert open_store.stat().st_uid == NOBODY
    before = {name: (open_store / name).stat().st_mtime_ns for name in list_names(open_store)}
    assert masks() == expected_masks
    assert {name: (open_store / name).stat().st_mtime_ns for name in list_names(open_store)} == before


@pytest.mark.parametrize("home", [None, "", "/nonexistent/home", "/dev/null"])
def test_no_home(home: str | None, expected_masks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert run_in_child(lambda: masks() == expected_masks, before=as_nobody)


@pytest.mark.parametrize("named", ["/dev/null", "/proc/self/mem", "/nonexistent/\udcff/x", "x" * 5_000, "~", "."])
def test_a_store_that_cannot_be(
    named: str, expected_masks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, named)
    monkeypatch.chdir(tmp_path)
    assert run_in_child(lambda: masks() == expected_masks, before=as_nobody)


def test_a_process_that_may_not_start_threads(
    store: Path, expected_masks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is computed, and written when the process ends."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sealed_files, "PIECE", 1_000)
    monkeypatch.setattr(sealed_files.os, "cpu_count", lambda: 4)
    assert masks() == expected_masks
    written = {name: (store / name).read_bytes() for name in list_names(store)}
    assert {Path(name).suffix for name in written} == KINDS
    shutil.rmtree(store)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(write_behind, "start_new_thread", refuse)
    assert masks() == masks() == expected_masks
    assert {name: (store / name).read_bytes() for name in list_names(store)} == written


def test_deleted_while_running(store: Path, expected_masks: list[str]) -> None:
    for _ in range(3):
        assert masks() == expected_masks
        shutil.rmtree(store)
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,))
    compile(vocabulary, schema=SCHEMA).matcher().mask()
    shutil.rmtree(store)
    store.write_text("no folder any more")
    programs.flush()
    assert masks() == expected_masks


def test_truncated_in_place_while_it_is_in_use(store: Path, expected_masks: list[str]) -> None:
    """What was read is a copy: a map of a file that becomes shorter would kill the process."""
    masks()
    recent.clear()
    vocabulary = Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,))
    constraint = compile(vocabulary, schema=SCHEMA)
    for path in store.iterdir():
        os.truncate(path, 0)
    matcher = constraint.matcher()
    matcher.advance_bytes(TEXT)
    assert matcher.is_complete
    assert masks() == expected_masks


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_damaged_anywhere(store: Path, expected_masks: list[str], kind: str) -> None:
    """Each kind of file, truncated, and with flipped bits at positions throughout (every byte of a small file: see
    test_cache).
    """
    masks()
    path = min(store.glob(f"*{kind}"))
    whole = path.read_bytes()
    rng = random.Random(0)
    for place in [0, 1, 39, 40, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(8))]:
        for damaged in (
            whole[:place],
            whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :],
        ):
            path.write_bytes(damaged)
            assert read_sealed(path, digest_code()) is None
            assert masks() == expected_masks
            assert path.read_bytes() == whole, "it is written anew"


def test_written_and_pruned_by_many_at_once(tmp_path: Path) -> None:
    """A reader finds no file or a complete one."""
    folder = tmp_path / "many"
    contents = [bytes([k]) * (50_000 * k + 1) for k in range(4)]

    def work(seed: int) -> int:
        rng, found = random.Random(seed), 0
        for step in range(60):
            path = folder / f"{rng.randrange(3)}.x"
            if rng.random() < 0.5:
                write_sealed(path, b"k", [rng.choice(contents)])
            if step % 10 == 9:
                prune_folder(folder, ".x", rng.randrange(4), 1 << 20)
            data = read_sealed(path, b"k")
            assert data is None or bytes(data) in contents
            found += data is not None
        return found

    assert sum(forked(*(lambda s=s: work(s) for s in range(4)))) > 0  # type: ignore[misc]
    assert not [name for name in list_names(folder) if name.startswith(TEMPORARY)]


CALLS = ("open", "fchmod", "fsync", "replace", "close", "mkdir", "fdopen", "unlink", "lstat")


def run_killed(work: Callable[[], Any], call: int, when: str) -> bool:
    """Runs work in a child that is killed before or after its n-th call of the system; whether it came so far."""
    child = os.fork()
    if not child:
        count = iter(range(10_000))

        def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any, **more: Any) -> Any:
                mine = next(count) == call
                if mine and when == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                result = function(*arguments, **more)
                if mine:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return run

        for name in CALLS:
            setattr(os, name, guarded(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_point_of_a_save(tmp_path: Path, when: str) -> None:
    """What was there stays, or the new file is there: never half of one."""
    vocabulary = Vocabulary.bytes()
    first, second = compile(vocabulary, regex="a+"), compile(vocabulary, regex="b+" * 400)
    path, seen = tmp_path / "it", set[str]()
    for call in range(30):
        first.save(path)
        if not run_killed(lambda: second.save(path), call, when):
            break
        found = Constraint.load(path, vocabulary).source
        assert found in (first.source, second.source)
        seen.add(str(found))
    assert call > 3
    assert str(first.source) in seen
    left = [name for name in list_names(tmp_path) if name.startswith(TEMPORARY)]
    assert len(left) <= call + 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_point_of_a_write_to_the_cache(tmp_path: Path, when: str) -> None:
    path, old, new = tmp_path / "cache" / "it.x", b"old" * 99, b"new" * 9_999
    for call in range(30):
        assert write_sealed(path, b"k", [old])
        if not run_killed(lambda: write_sealed(path, b"k", [new]), call, when):
            break
        assert read_sealed(path, b"k") in (old, new)
    assert call > 3
    for left in path.parent.glob(f"{TEMPORARY}*"):
        os.utime(left, (1, 1))
    prune_folder(path.parent, ".x", 9, 1 << 20)
    assert list_names(path.parent) == ["it.x"], "temporary files of who was killed are removed after a while"


# ---- machine code


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of machine code with a file as the real ones."""
    folder = tmp_path / "objects"
    monkeypatch.setattr(library_cache, "find_folder", lambda source_hash: (folder, tmp_path))
    assert library_cache.keep_file("", "here", ".so", b"machine code" * 50) is not None
    yield folder


DAMAGES: dict[str, Callable[[Path], None]] = {
    "others may write the file": lambda path: path.chmod(0o666),
    "group may write the file": lambda path: path.chmod(0o664),
    "others may write the folder": lambda path: path.parent.chmod(0o777),
    "others may write the folder above": lambda path: path.parent.parent.chmod(0o777),
    "another owner": lambda path: os.chown(path, NOBODY, -1) if os.geteuid() == 0 else pytest.skip("needs root"),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "ten bytes": lambda path: os.truncate(path, 10),
    "empty": lambda path: os.truncate(path, 0),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\0") and None,
    "renamed": lambda path: path.rename(path.with_name(f"here-{'0' * 32}.so")) and None,
    "another file": lambda path: path.write_bytes(b"another machine's code") and None,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_machine_code_comes_from_trusted_files_alone(objects: Path, damage: Callable[[Path], None]) -> None:
    (path,) = library_cache.list_libraries("", "here", ".so")
    assert path.read_bytes() == b"machine code" * 50
    damage(path)
    assert not list(library_cache.list_libraries("", "here", ".so"))
    assert list_names(objects), "it is there"


@pytest.mark.parametrize("writable", ["package", "kernels", "cache"])
def test_a_package_folder_that_others_may_write_holds_no_machine_code(
    tmp_path: Path, writable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package"
    beside = package / "kernels" / "__pycache__"
    beside.mkdir(parents=True, mode=0o755)
    for one in (package, package / "kernels", beside):
        one.chmod(0o755)
    monkeypatch.setattr(library_cache, "PACKAGE", package)
    monkeypatch.setattr(library_cache, "KERNELS", package / "kernels")
    monkeypatch.setattr(library_cache, "BESIDE", beside)
    where, name = library_cache.find_folder, f"{library_cache.FOLDER}abc"
    assert where("abc") == (beside / name, package)
    {"package": package, "kernels": package / "kernels", "cache": beside}[writable].chmod(0o777)
    mine = tmp_path / "store"
    assert where("abc") == (mine / name, mine)
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    assert where("abc") is None, "compiled in memory"
    assert library_cache.keep_file("abc", "here", ".so", b"x") is None
