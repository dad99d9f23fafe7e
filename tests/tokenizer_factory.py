"""Small trained tokenizers of every convention.

    byte_level_bpe   GPT-2, Llama 3, Qwen: the byte map, any text
    sentencepiece_bpe, sentencepiece_unigram    Llama 2, Mistral, Gemma: U+2581, `<0xNN>`, a space put in front
    metaspace_unigram                           T5: no byte fallback, so unknown tokens
    word_piece                                  BERT: not byte-exact, refused
    sentencepiece_model                         the real thing, by the sentencepiece package

`MADE` names the byte-exact ones. `wrapped` makes any of them a transformers tokenizer. All are the same each time.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

SPACE = "\u2581"
BYTES = [f"<0x{value:02X}>" for value in range(256)]
WORDS = """
    the of and to in name age value list item true false null city street green red order number person people
    Anna Bob Jörg café naïve Zürich Łódź 你好 世界 привет 東京 date price total email description house large
"""


def texts(count: int = 400, seed: int = 0) -> list[str]:
    """Return lines of prose and JSON to train on."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        words = rng.choices(WORDS.split(), k=rng.randint(2, 8))
        value = {rng.choice(WORDS.split()): rng.choice([rng.randint(0, 999), " ".join(words[:3]), None, True, 1.5])}
        indent = rng.choice([None, None, 2])
        out.append(" ".join(words).capitalize() + "." if rng.random() < 0.5 else json.dumps(value, indent=indent))
    return out


@lru_cache(maxsize=1)
def byte_level_bpe() -> Tokenizer:
    """Train a tokenizer like those of GPT-2 and Llama 3: 500 tokens, `<|end|>` and `<|turn|>` special,
    `<tool>` and `é!` added but not special.
    """
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=496, initial_alphabet=alphabet, special_tokens=["<|end|>", "<|turn|>"], show_progress=False
    )
    made.train_from_iterator(texts(), trainer)
    made.add_tokens([AddedToken("<tool>", special=False), AddedToken("é!", special=False, normalized=False)])
    return made


@lru_cache(maxsize=1)
def sentencepiece_bpe() -> Tokenizer:
    """Train a tokenizer like those of Llama 2 and Mistral 7B: a space is prepended to a text, and
    removed in decoding.
    """
    grown = Tokenizer(models.BPE(unk_token="<unk>"))
    grown.normalizer = spaces_written("always")
    grown.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=300, show_progress=False, min_frequency=2))
    state = json.loads(grown.model.__getstate__())
    pieces = ["<unk>", "<s>", "</s>", *BYTES, *sorted(state["vocab"], key=state["vocab"].__getitem__)]
    vocab = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    merges = [tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in state["merges"]]
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = spaces_written("always")
    made.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens(["<unk>", "<s>", "</s>", "[INST]"])
    return made


@lru_cache(maxsize=1)
def sentencepiece_unigram() -> Tokenizer:
    """Train a tokenizer like that of Gemma, but Unigram: byte fallback, no space is prepended to a text."""
    pieces = grown_unigram("never")
    floor = min(score for _, score in pieces) - 10
    head = [("<unk>", 0.0), ("<bos>", 0.0), ("<eos>", 0.0), *((piece, floor) for piece in BYTES)]
    made = Tokenizer(models.Unigram([*head, *pieces], 0, True))
    made.normalizer = spaces_written("never")
    made.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens(["<unk>", "<bos>", "<eos>", "<end_of_turn>"])
    return made


@lru_cache(maxsize=1)
def metaspace_unigram() -> Tokenizer:
    """Train a tokenizer like that of T5: no byte fallback, so some texts cannot be spelled; a space is prepended."""
    made = Tokenizer(
        models.Unigram([("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *grown_unigram("always")], 2, False)
    )
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return made


@lru_cache(maxsize=1)
def word_piece() -> Tokenizer:
    """Train a tokenizer like that of BERT, which loses the positions of spaces."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]", "[SEP]"], show_progress=False)
    made.train_from_iterator(texts(), trainer)
    return made


def spaces_written(scheme: str) -> Any:
    """The normaliser that writes spaces as U+2581, and puts one in front if the scheme is "always"."""
    replace = normalizers.Replace(" ", SPACE)
    return normalizers.Sequence([normalizers.Prepend(SPACE), replace]) if scheme == "always" else replace


def grown_unigram(scheme: str) -> list[tuple[str, float]]:
    """Pieces and scores of a Unigram model of `texts`."""
    grown = Tokenizer(models.Unigram())
    grown.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    grown.train_from_iterator(texts(), trainers.UnigramTrainer(vocab_size=300, show_progress=False))
    return [(piece, score) for piece, score in json.loads(grown.model.__getstate__())["vocab"]]


@lru_cache(maxsize=4)
def sentencepiece_model(kind: str = "bpe", prefix: str = "space") -> bytes:
    """A serialised SentencePiece model ("bpe" or "unigram") with byte fallback; prefix "space" or "none"."""
    spm = pytest.importorskip("sentencepiece")
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts()),
        model_writer=out,
        model_type=kind,
        vocab_size=450,
        byte_fallback=True,
        add_dummy_prefix=prefix == "space",
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        user_defined_symbols=["<tool>"],
        control_symbols=["[INST]"],
        minloglevel=2,
        num_threads=1,
    )
    return out.getvalue()


def wrapped(tokenizer: Tokenizer, eos: str, **names: str) -> Any:
    """The same as a transformers tokenizer (a copy: transformers changes what it is given)."""
    transformers = pytest.importorskip("transformers")
    copy = Tokenizer.from_str(tokenizer.to_str())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=copy, eos_token=eos, **names)


MADE: dict[str, tuple[Callable[[], Tokenizer], str]] = {
    "byte_level_bpe": (byte_level_bpe, "<|end|>"),
    "sentencepiece_bpe": (sentencepiece_bpe, "</s>"),
    "sentencepiece_unigram": (sentencepiece_unigram, "<eos>"),
}
"""Byte-exact for any text: name -> maker, end token."""
