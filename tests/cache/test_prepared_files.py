"""Prepared tables on disk: the same masks, and a damaged file is never trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from constrain import Vocabulary, compile
from constrain.cache.cache_folder import VARIABLE
from constrain.cache.sealed_files import TEMPORARY
from constrain.vocabulary import mask_table_cache

WORDS = [bytes([b]) for b in range(256)] + [
    f'{a}"{b}'.encode() for a in ("", "x", " ", "12", "é") for b in ("", ",", ": ")
]
TOKENS: list[bytes | None] = [*WORDS, *(f"w{k}".encode() for k in range(3_000)), None]


def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, eos_ids=(len(TOKENS) - 1,))


def mask(text: bytes) -> bytes:
    """Return the mask after a text, for a vocabulary that has no table in this process yet."""
    matcher = compile(vocabulary(), schema={"type": ["string", "number"]}).matcher()
    matcher.advance_bytes(text)
    return matcher.mask().tobytes()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tables"))
    return tmp_path / "tables"


def test_table_read_from_disk_gives_the_same_masks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [mask(text) for text in (b"", b'"ab', b"1", b'"\\u00')]
    assert len(list(folder.glob("*.table"))) == 1
    monkeypatch.setattr(mask_table_cache, "_build", lambda vocabulary: pytest.fail("the table on disk was not used"))
    assert made == [mask(text) for text in (b"", b'"ab', b"1", b'"\\u00')]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_file_is_rebuilt(folder: Path, damage: str) -> None:
    wanted = mask(b'"a')
    (path,) = folder.glob("*.table")
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes({"cut": data[:middle], "flip": flipped, "empty": b"", "text": b"{}\n"}[damage])
    assert mask(b'"a') == wanted
    assert path.read_bytes() == data


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "below"))
    assert mask(b'"a')


@pytest.mark.parametrize("off", ["", "off"])
def test_disabled_store_writes_no_files(off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, off)
    assert mask(b'"a')
    assert not list(tmp_path.iterdir())


def test_old_files_are_pruned(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for k in range(mask_table_cache.MOST_FILES + 4):
        (folder / f"{k}.table").write_bytes(b"")
    abandoned = folder / f"{TEMPORARY}x"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (1, 1))
    mask(b"")
    assert len(list(folder.glob("*.table"))) == mask_table_cache.MOST_FILES
    assert not abandoned.exists()
