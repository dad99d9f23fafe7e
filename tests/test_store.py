"""Prepared tables on disk: the same masks, and a damaged file is never trusted."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain import Vocabulary, compile
from constrain.store import files, tables

WORDS = [bytes([b]) for b in range(256)] + [
    f'{a}"{b}'.encode() for a in ("", "x", " ", "12", "é") for b in ("", ",", ": ")
]
TOKENS: list[bytes | None] = [*WORDS, *(f"w{k}".encode() for k in range(3_000)), None]


def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,))


def mask(text: bytes) -> bytes:
    """The mask behind a text, by a vocabulary that has no table in this process yet."""
    matcher = compile(vocabulary(), schema={"type": ["string", "number"]}).matcher()
    matcher.advance_bytes(text)
    return matcher.mask().tobytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "tables"))
    return tmp_path / "tables"


def test_what_is_read_masks_as_what_was_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [mask(text) for text in (b"", b'"ab', b"1", b'"\\u00')]
    assert len(list(folder.glob("*.table"))) == 1
    monkeypatch.setattr(tables, "_make", lambda vocabulary: pytest.fail("the table on disk was not used"))
    assert made == [mask(text) for text in (b"", b'"ab', b"1", b'"\\u00')]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_file_is_made_anew(folder: Path, damage: str) -> None:
    wanted = mask(b'"a')
    (path,) = folder.glob("*.table")
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes({"cut": data[:middle], "flip": flipped, "empty": b"", "text": b"{}\n"}[damage])
    assert mask(b'"a') == wanted
    assert path.read_bytes() == data


def test_a_file_that_others_may_write_is_not_read(folder: Path) -> None:
    mask(b"")
    (path,) = folder.glob("*.table")
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert files.read(path) is not None
    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert files.read(path) is None
    path.chmod(0o600)
    link = folder / "link"
    link.symlink_to(path)
    assert files.read(link) is None
    assert files.read(folder) is None
    os.mkfifo(folder / "pipe", 0o600)
    assert files.read(folder / "pipe") is None
    if os.geteuid() == 0:  # who is root may give files away
        os.chown(path, 12345, -1)
        assert files.read(path) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "file" / "below"))
    assert mask(b'"a')


@pytest.mark.parametrize("off", ["", "off"])
def test_it_can_be_switched_off(off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(files.VARIABLE, off)
    assert mask(b'"a')
    assert not list(tmp_path.iterdir())


def test_few_files_are_kept(folder: Path) -> None:
    folder.mkdir()
    for k in range(tables.MOST_FILES + 4):
        (folder / f"{k}.table").write_bytes(b"")
    abandoned = folder / f"{files.BEGUN}x"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (1, 1))
    mask(b"")
    assert len(list(folder.glob("*.table"))) == tables.MOST_FILES
    assert not abandoned.exists()


def test_files_are_bounded_by_bytes_too(folder: Path) -> None:
    folder.mkdir()
    for k in range(5):
        (folder / f"{k}.x").write_bytes(b"." * 100)
        os.utime(folder / f"{k}.x", (k, k))
    files.prune(folder, "*.x", 10, 250)
    assert sorted(path.name for path in folder.iterdir()) == ["3.x", "4.x"]


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=2_100), st.data())
def test_a_checksum_sees_one_word_that_is_another(values: list[int], data: st.DataObject) -> None:
    words = np.array(values, np.int32)
    before = files.checksum(words)
    place = data.draw(st.integers(0, len(values) - 1))
    other = words.copy()
    other[place] ^= 1 << data.draw(st.integers(0, 30))
    assert files.checksum(other) != before
    assert files.checksum(words[:-1]) != before
    assert files.checksum(np.append(words, np.int32(0))) != before


def test_a_checksum_sees_pages_that_are_exchanged() -> None:
    words = np.arange(8 * 1024, dtype=np.int32)
    other = np.concatenate([words[:1024], words[2048:3072], words[1024:2048], words[3072:]])
    assert files.checksum(other) != files.checksum(words)
