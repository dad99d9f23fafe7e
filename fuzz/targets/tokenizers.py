"""Tokenizer files from untrusted sources: tokenizer.json, tiktoken ranks and SentencePiece models.

tokenizer-json, tiktoken, sentencepiece  damaged files: a Vocabulary with which masks can be made, or a ConstrainError
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain import Vocabulary

from ..edits import damage_text, edit_text
from ..target import Target, suppress_our_errors
from ..walk import walk
from .saved import replace_place, write_file

__all__ = ["TARGETS"]


@lru_cache(maxsize=4)
def build_tokenizer_json(kind: str) -> str:
    """Return a small tokenizer.json."""
    from tests import tokenizer_factory

    return str(tokenizer_factory.MADE[kind][0]().to_str())


@lru_cache(maxsize=1)
def build_ranks() -> bytes:
    """Return a small ranks file: all bytes, and some pairs."""
    tokens = [bytes((value,)) for value in range(256)] + [b"ab", b"aba", b'":', b"\xc3\xa9"]
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


@lru_cache(maxsize=2)
def build_model(kind: str) -> bytes:
    """Return a small SentencePiece model."""
    from tests import tokenizer_factory

    return bytes(tokenizer_factory.sentencepiece_model(kind))


@st.composite
def change_json(draw: st.DrawFn) -> bytes:
    """Return a tokenizer.json with places of its structure changed, or its text damaged."""
    text = build_tokenizer_json(draw(st.sampled_from(["byte_level_bpe", "sentencepiece_bpe", "sentencepiece_unigram"])))
    if draw(st.booleans()):
        return draw(edit_text(st.just(text), ["{}", "null", '"type":', "[]", "1e400", '"BPE"'])).encode(
            errors="surrogatepass"
        )
    value = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from(sorted(value)))
        replace_place(draw, value[part] if isinstance(value[part], (dict, list)) and value[part] else value)
    return json.dumps(value).encode()


def prepare() -> None:
    """Train the tokenizers once."""
    for kind in ("byte_level_bpe", "sentencepiece_bpe", "sentencepiece_unigram"):
        build_tokenizer_json(kind)


def check_json(data: bytes) -> None:
    with write_file(data, "tokenizer.json") as path:
        use_file(path)


def check_ranks(data: bytes) -> None:
    with write_file(data, "ranks.tiktoken") as path:
        use_file(path, eos_ids=[0])


def check_model(data: bytes) -> None:
    with write_file(data, "tokenizer.model") as path:
        use_file(path)


def use_file(path: Path, **options: Any) -> None:
    """Read the vocabulary and walk along masks with it."""
    with suppress_our_errors():
        vocabulary = Vocabulary.from_pretrained(path, **options)
        walk(constrain.compile(vocabulary, schema={"type": "array", "items": {"enum": [1, "a"]}}), 1, 6)


line = st.builds(lambda token, rank: base64.b64encode(token) + b" " + rank + b"\n", st.binary(max_size=3),
                 st.sampled_from([b"0", b"1", b"-1", b"9" * 30, b"x", b"", b"1.5", b"260"]))  # fmt: skip
rank_files = st.one_of(
    damage_text(st.deferred(lambda: st.just(build_ranks()))), st.lists(line, max_size=4).map(b"".join), st.binary(max_size=40),
    st.tuples(st.deferred(lambda: st.just(build_ranks())), st.lists(line, max_size=3)).map(lambda t: t[0] + b"".join(t[1])),
)  # fmt: skip
models = st.sampled_from(["bpe", "unigram"]).flatmap(lambda kind: damage_text(st.just(build_model(kind))))

TARGETS = (
    Target("tokenizer-json", "damaged tokenizer.json files", change_json(), check_json, prepare),
    Target("tiktoken", "damaged ranks files", rank_files, check_ranks),
    Target("sentencepiece", "damaged SentencePiece models", models, check_model),
)
