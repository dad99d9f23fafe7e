"""Cached files: one trust check, one digest, one atomic writer, whatever is cached.

Faults of the disk that concern a whole process are in `test_disk_faults.py`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from constrain.cache import file_trust, sealed_files
from constrain.cache.file_trust import is_trusted
from constrain.cache.sealed_files import ABANDONED, TEMPORARY, prune_folder, read_sealed, write_sealed

KEY = b"key"
CONTENT = bytes(range(256)) * 3
OTHER = 12345
"""A user id that is not ours."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


@pytest.fixture
def path(folder: Path) -> Path:
    assert write_sealed(folder / "one", KEY, [CONTENT[:100], CONTENT[100:]])
    return folder / "one"


def chown(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root may give files away")
    os.chown(path, OTHER, -1, follow_symlinks=False)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


UNTRUSTED: dict[str, Callable[[Path], None]] = {
    "group may write": lambda path: path.chmod(0o620),
    "others may write": lambda path: path.chmod(0o602),
    "another owner": chown,
    "a symbolic link": replace_by_link,
    "a pipe": replace_by_fifo,
    "a folder": replace_by_folder,
    "the folder, group": lambda path: path.parent.chmod(0o770),
    "the folder, others": lambda path: path.parent.chmod(0o707),
    "the folder, another owner": lambda path: chown(path.parent),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", UNTRUSTED.values(), ids=UNTRUSTED)
def test_only_what_this_user_alone_can_have_written_is_read(path: Path, change: Callable[[Path], None]) -> None:
    assert read_sealed(path, KEY) == CONTENT
    change(path)
    assert read_sealed(path, KEY) is None


@pytest.mark.parametrize("change", [name for name in UNTRUSTED if name.startswith("the folder")])
def test_nothing_is_written_to_an_untrusted_folder_or_removed_from_it(path: Path, change: str) -> None:
    UNTRUSTED[change](path)
    before = sorted(path.parent.iterdir())
    assert not write_sealed(path.with_name("two"), KEY, [CONTENT])
    assert not write_sealed(path, KEY, [b"new"])
    prune_folder(path.parent, "", 0, 0)
    assert sorted(path.parent.iterdir()) == before


@pytest.mark.parametrize(
    "change", ["group may write", "others may write", "another owner", "a symbolic link", "a pipe"]
)
def test_a_file_that_fails_is_replaced(path: Path, change: str) -> None:
    UNTRUSTED[change](path)
    assert write_sealed(path, KEY, [b"new"])
    assert read_sealed(path, KEY) == b"new"
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_symbolic_link_is_not_written_through(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_bytes(b"precious")
    path.unlink()
    path.symlink_to(victim)
    assert write_sealed(path, KEY, [b"new"])
    assert victim.read_bytes() == b"precious"


def test_parents_up_to_the_root_must_be_trusted(tmp_path: Path) -> None:
    below = tmp_path / "root" / "between" / "below"
    assert write_sealed(below / "one", KEY, [CONTENT])
    root = tmp_path / "root"
    assert read_sealed(below / "one", KEY, root) == CONTENT
    for one in (root, root / "between"):
        one.chmod(0o777)
        assert read_sealed(below / "one", KEY, root) is None
        assert not write_sealed(below / "two", KEY, [CONTENT], 0o600, root)
        one.chmod(0o700)


def test_a_link_of_another_user_leads_nowhere(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    assert read_sealed(link / "one", KEY) == CONTENT, "our own link"
    chown(link)
    assert not is_trusted(link)
    assert read_sealed(link / "one", KEY) is None


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_written_files_and_folders_are_private_with_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert write_sealed(tmp_path / "a" / "b" / "one", KEY, [CONTENT])
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b" / "one").stat().st_mode & 0o777 == 0o600
    assert read_sealed(tmp_path / "a" / "b" / "one", KEY) == CONTENT


def test_truncated_at_every_byte_or_one_bit_flipped_it_is_not_there(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert read_sealed(path, KEY) is None
    for place in range(len(whole)):
        for bit in (1, 128):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            assert read_sealed(path, KEY) is None
    path.write_bytes(whole + b"\0")
    assert read_sealed(path, KEY) is None
    path.write_bytes(whole)
    assert read_sealed(path, KEY) == CONTENT


def test_a_file_belongs_to_its_name_and_its_key(path: Path) -> None:
    path.with_name("two").write_bytes(path.read_bytes())
    path.with_name("two").chmod(0o600)
    assert read_sealed(path.with_name("two"), KEY) is None
    assert read_sealed(path, b"other code") is None


@given(st.lists(st.binary(max_size=50), max_size=4), st.integers(1, 7))
def test_the_digest_is_over_all_bytes_in_order(parts: list[bytes], piece: int) -> None:
    """Also where the content is hashed in pieces, by several threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed_files, "PIECE", piece)
        content = b"".join(parts)
        wanted = sealed_files.seal_file(KEY, "n", [content])
        for place in range(len(content)):
            changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            assert sealed_files.seal_file(KEY, "n", [changed]) != wanted
        assert sealed_files.seal_file(KEY, "n", [content + b"\0"]) != wanted
        assert sealed_files.seal_file(KEY, "m", [content]) != wanted


def break_call(call: str, code: int) -> Callable[..., None]:
    def fail(*arguments: object, **more: object) -> None:
        raise OSError(code, call)

    return fail


@pytest.mark.parametrize("call", ["open", "fchmod", "replace", "mkdir"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_a_write_that_fails_leaves_all_as_it_was(
    path: Path, call: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(os, call, break_call(call, code))
        if call == "mkdir":
            patch.setattr(Path, "mkdir", break_call(call, code))
            assert not write_sealed(path.parent / "new" / "one", KEY, [CONTENT])
        else:
            assert not write_sealed(path, KEY, [b"new"])
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before
    assert read_sealed(path, KEY) == CONTENT


def test_an_interrupted_write_leaves_nothing(path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with file_trust.open_folder(path.parent) as folder:
        assert folder is not None
        with pytest.raises(KeyboardInterrupt):
            sealed_files.replace_file(folder, "one", parts())  # type: ignore[arg-type]
    assert [one.name for one in path.parent.iterdir()] == ["one"]
    assert read_sealed(path, KEY) == CONTENT


def touch(folder: Path, ages: dict[str, float], size: int = 100) -> None:
    for name, age in ages.items():
        (folder / name).write_bytes(b"." * size)
        then = time.time() - age
        os.utime(folder / name, (then, then))


def list_names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_the_latest_files_stay(folder: Path) -> None:
    touch(folder, {f"{k}.x": 100 * k for k in range(9)} | {"other.y": 10_000})
    prune_folder(folder, ".x", 5, 1 << 20)
    assert list_names(folder) == {*(f"{k}.x" for k in range(5)), "other.y"}
    prune_folder(folder, ".x", 5, 250)
    assert list_names(folder) == {"0.x", "1.x", "other.y"}


def test_times_in_the_future_are_the_oldest(folder: Path) -> None:
    """A clock that was wrong once: its files go first, and do not drive out those of today."""
    touch(folder, {"now.x": 0, "hour.x": 3600, "tomorrow.x": -86_400, "next year.x": -31_536_000})
    prune_folder(folder, ".x", 2, 1 << 20)
    assert list_names(folder) == {"now.x", "hour.x"}


def test_a_clock_that_was_set_back_loses_nothing_for_good(folder: Path) -> None:
    touch(folder, {f"{k}.x": -86_400 - k for k in range(5)})
    touch(folder, {"new.x": 0})
    prune_folder(folder, ".x", 3, 1 << 20)
    assert "new.x" in list_names(folder)
    assert len(list_names(folder)) == 3


@pytest.mark.parametrize("age", [ABANDONED + 10, -ABANDONED - 10, 30 * ABANDONED])
def test_abandoned_temporary_files_go(folder: Path, age: float) -> None:
    touch(folder, {f"{TEMPORARY}1-x": age, f"{TEMPORARY}2-y": 5})
    prune_folder(folder, ".x", 9, 1 << 20)
    assert list_names(folder) == {f"{TEMPORARY}2-y"}


@pytest.mark.parametrize("kind", ["file", "pipe", "loop", "others may write"])
def test_the_reason_why_a_folder_is_not_used_is_logged_once(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "store"
    if kind == "file":
        folder.write_bytes(b"")
    elif kind == "pipe":
        os.mkfifo(folder)
    elif kind == "loop":
        folder.symlink_to(folder)
    else:
        folder.mkdir()
        folder.chmod(0o777)
    for _ in range(2):
        assert not write_sealed(folder / "one", KEY, [CONTENT])
    reason = "it must belong to you and `chmod go-w`" if kind == "others may write" else "it is not a folder"
    assert caplog.messages == [f"{folder} is not used as a cache: {reason}"]
