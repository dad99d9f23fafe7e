"""Vocabularies on disk: the same in every field, whatever is damaged; tokens in the order of their bytes."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain import Vocabulary
from constrain.cache.cache_folder import VARIABLE
from constrain.integrations import token_files
from constrain.vocabulary import vocabulary_cache
from constrain.vocabulary.token_order import order_tokens

PLAIN = [*(bytes([b]) for b in range(256)), *(f" word{k}".encode() for k in range(9_000)), b"\xff\xfe", b"\x00"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    path = tmp_path / "some.tiktoken"
    path.write_bytes(b"".join(b64encode(token) + b" %d\n" % rank for rank, token in enumerate(PLAIN)))
    return path


def read_fields(vocabulary: Vocabulary) -> dict[str, Any]:
    found = {one.name: getattr(vocabulary, one.name) for one in fields(vocabulary)}
    found["offsets"] = found["offsets"].tolist()
    found["special"], found["names"] = list(found["special"].items()), dict(found["names"])
    return {name: value for name, value in found.items() if not name.startswith("encode")}


@pytest.mark.parametrize(
    "how",
    [
        {"eos_ids": [9_300]},
        {"special": {"<a>": 9_258, "<end>": 9_259, "<z>": 9_299}, "eos_ids": [9_259], "size": 9_400},
        {"special": {"<end>": 9_258}, "eos_ids": [9_258], "pattern": r"\s*\w+|."},
    ],
)
def test_cached_tiktoken_vocabulary_equals_the_original(
    folder: Path, ranks: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"size": 9_301, **how}
    made = Vocabulary.from_tiktoken(ranks, **how)
    assert len(list(folder.glob("*.vocabulary"))) == 1
    monkeypatch.setattr(token_files, "read_ranks", lambda *_: pytest.fail("the file in the store was not used"))
    again = Vocabulary.from_tiktoken(ranks, **how)
    assert read_fields(again) == read_fields(made)
    assert (again.encode is None) == (made.encode is None) == ("pattern" not in how)
    if made.encode is not None and again.encode is not None:
        pytest.importorskip("tiktoken")
        assert again.encode(" word17 word") == made.encode(" word17 word")


def test_other_arguments_have_another_cache_key(folder: Path, ranks: Path) -> None:
    first = Vocabulary.from_tiktoken(ranks, eos_ids=[9_258], size=9_259)
    assert Vocabulary.from_tiktoken(ranks, eos_ids=[9_259], size=9_260) != first
    ranks.write_bytes(ranks.read_bytes() + b64encode(b"more") + b" 9258\n")
    assert Vocabulary.from_tiktoken(ranks, eos_ids=[9_259], size=9_260).tokens[9_258] == b"more"


def test_ranks_that_end_a_text_are_not_cached(folder: Path, ranks: Path) -> None:
    """Their bytes are needed to encode, and are no longer in the Vocabulary."""
    for _ in range(2):
        assert Vocabulary.from_tiktoken(ranks, eos_ids=[10]).tokens[10] is None
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_file_is_read_again(folder: Path, ranks: Path, damage: str) -> None:
    wanted = Vocabulary.from_tiktoken(ranks, eos_ids=[9_258], size=9_259)
    (path,) = folder.glob("*.vocabulary")
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes({"cut": data[:middle], "flip": flipped, "empty": b"", "text": b"{}\n"}[damage])
    assert read_fields(Vocabulary.from_tiktoken(ranks, eos_ids=[9_258], size=9_259)) == read_fields(wanted)
    assert path.read_bytes() == data


def test_small_files_are_read_themselves(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.tiktoken"
    path.write_bytes(b64encode(b"a") + b" 0\n")
    assert path.stat().st_size < vocabulary_cache.LEAST_BYTES
    Vocabulary.from_tiktoken(path, eos_ids=[1], size=2)
    assert not folder.exists()


@given(st.lists(st.one_of(st.binary(max_size=4), st.binary(min_size=14, max_size=18), st.sampled_from(
    [b"", b"a", b"a\0", b"\0", b"\0" * 15, b"\0" * 16, b"\0" * 17, b"x" * 16, b"x" * 16 + b"\0", b"x" * 17, b"x" * 40]
))))  # fmt: skip
def test_tokens_in_the_order_of_their_bytes(tokens: list[bytes]) -> None:
    vocabulary = Vocabulary.from_tokens([*tokens, None], [len(tokens)])
    spelled = [vocabulary.spelled(i) for i in range(len(tokens))]
    wanted = sorted((i for i in range(len(tokens)) if spelled[i]), key=lambda i: (spelled[i], i))
    assert order_tokens(vocabulary.blob, vocabulary.offsets).tolist() == wanted
