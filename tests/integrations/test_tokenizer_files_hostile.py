"""Tokenizer files from strangers: VocabularyError, in bounded memory, whatever is in them; and no network."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain import ConstrainError, Vocabulary
from tests import tokenizer_factory as make

RANKS = "".join(f"{base64.b64encode(bytes((value,))).decode()} {value}\n" for value in range(256)).encode()
TEKKEN = {
    "config": {"default_num_special_tokens": 3, "default_vocab_size": 259, "pattern": r"\s?\S+"},
    "vocab": [{"rank": k, "token_bytes": base64.b64encode(bytes((k,))).decode()} for k in range(256)],
    "special_tokens": [{"token_str": name, "rank": k} for k, name in enumerate(("<unk>", "<s>", "</s>"))],
}
WRONG: list[Any] = [None, True, -1, 2**40, 10**30, 1.5, "", "x", [], {}, [[]], "\ud800"]


def variants(document: Any) -> list[Any]:
    """The document with one part after another replaced by something wrong (the first of long lists only)."""
    out: list[Any] = list(WRONG)
    if isinstance(document, dict):
        for key, part in document.items():
            out += [{**document, key: other} for other in variants(part)]
            out.append({other: value for other, value in document.items() if other != key})
    elif isinstance(document, list) and document:
        out += [[other, *document[1:]] for other in variants(document[0])]
        out += [document[:1] * 2 + document[1:], document[1:]]
    return out


def read(path: Path) -> None:
    try:
        found = Vocabulary.from_pretrained(path, eos_ids=[0])
    except ConstrainError as error:
        assert len(str(error)) < 5000
    else:
        assert found.size <= 1 << 24


def test_damaged_tekken_files(tmp_path: Path) -> None:
    file = tmp_path / "tekken.json"
    for document in variants(TEKKEN):
        file.write_text(json.dumps(document))
        read(file)


@pytest.mark.parametrize("data", [
    b"", b"\0", b"YQ== 0", b"YQ== -1\n", b"YQ== 1099511627776\n", b"YQ== 99999999999999999999999\n",
    b"YQ== 0\nYg== 0\n",
    b"? 0\n", b"YQ== x\n", b"YQ==\n", RANKS[:-3], RANKS + b"YQ== 16777216\n", b"\xff\xfe", b"YQ== " + b"9" * 10_000,
])  # fmt: skip
def test_damaged_rank_files(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.tiktoken"
    file.write_bytes(data)
    read(file)


def test_damaged_fast_tokenizers_and_configs(tmp_path: Path) -> None:
    make.wrapped(make.byte_level_bpe(), "<|end|>").save_pretrained(tmp_path)
    text = (tmp_path / "tokenizer.json").read_text()
    state = json.loads(text)
    state["added_tokens"] = [{**state["added_tokens"][0], "id": 2**31}]
    lone = tmp_path / "lone"
    lone.mkdir()
    for data in (text[: len(text) // 2], "[" * 100_000, "{}", "null", json.dumps(state), text.replace('"BPE"', '"X"')):
        (lone / "tokenizer.json").write_text(data)
        read(lone / "tokenizer.json")
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        kept = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
        for data in ("[", "[]", "[" * 100_000, '{"eos_token_id": "x"}', '{"eos_token_id": [{}]}',
                     '{"eos_token_id": 1e99, "vocab_size": 1e99}', '{"vocab_size": 1099511627776}',
                     '{"text_config": 5}', '{"auto_map": {"AutoTokenizer": ["evil.Tok", null]}}'):  # fmt: skip
            (tmp_path / name).write_text(data)
            read(tmp_path)
        if kept is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_bytes(kept)


@pytest.mark.parametrize("said", [0, 1, 4, 5, 2**31, 2**32 - 1])
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: {"type": "Sequence", "normalizers": [one]}])
def test_a_charsmap_never_takes_more_memory_than_it_has_bytes(
    said: int, wrap: Callable[[dict[str, str]], dict[str, Any]], tmp_path: Path
) -> None:
    """The tokenizers package allocates what the first four bytes say, and aborts the process if it cannot."""
    charsmap = base64.b64encode(said.to_bytes(4, "little") + b"\0" * 4).decode()
    state = json.loads(make.byte_level_bpe().to_str())
    state["normalizer"] = wrap({"type": "Precompiled", "precompiled_charsmap": charsmap})
    (tmp_path / "tokenizer.json").write_text(json.dumps(state))
    if said > 4:
        with pytest.raises(ConstrainError, match="charsmap"):
            Vocabulary.from_pretrained(tmp_path / "tokenizer.json", eos_ids=[0])
    else:
        read(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tekken.json", "x.tiktoken", "tokenizer.model"])
def test_pipes_loops_and_folders_are_no_files(name: str, tmp_path: Path) -> None:
    for kind in ("pipe", "loop", "folder"):
        folder = tmp_path / kind
        folder.mkdir()
        {"pipe": os.mkfifo, "loop": lambda path: os.symlink(path, path), "folder": os.mkdir}[kind](folder / name)
        for path in (folder, folder / name):
            with pytest.raises(ConstrainError):
                Vocabulary.from_pretrained(path, eos_ids=[0])


def test_the_embedded_model_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    vocabulary = Vocabulary.from_pretrained("demo")
    assert constrain.compile(vocabulary, regex="yes|no").matcher().mask().any()
    assert constrain.generate("demo", "Is it?", regex="yes|no", max_tokens=9, seed=0).text in ("yes", "no")
