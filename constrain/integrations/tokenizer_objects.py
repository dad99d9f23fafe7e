"""Vocabularies of Hugging Face tokenizers, and the entry point for all tokenizer objects.

The decoder of a fast tokenizer determines how the piece of a token becomes text. Three conventions are supported:

    byte-level     each character of a piece denotes one byte, by the map of GPT-2
    SentencePiece  U+2581 denotes a space ("spaces": Metaspace or Replace), `<0xNN>` one byte (ByteFallback)
    plain          the piece is the text

Any other decoder adds text between tokens or removes some (WordPiece, BPEDecoder, CTC), so that tokens have no bytes
of their own; such tokenizers are refused. Every derived vocabulary is tested (`vocabulary.tokenizer_check`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from ..base.errors import VocabularyError, shorten_text
from ..vocabulary.text_tokenisation import Encode
from ..vocabulary.tokenizer_check import TokenizerConduct, run_self_test
from ..vocabulary.vocabulary import Vocabulary
from ..vocabulary.vocabulary_arguments import MOST_TOKENS
from .end_tokens import check_names, ids_of
from .token_files import SPACE, from_mistral, from_sentencepiece, from_tiktoken, piece_bytes

__all__ = ["from_tokenizer", "name_tokenizer", "token_bytes"]

REPLACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
LIST_HINT = "Vocabulary.from_tokens takes the bytes of every token as you know them."


@dataclass(frozen=True)
class PieceSpelling:
    """How pieces become text.

    kind: see the module docstring. leading_space: what decoding does to a space at the start.
    """

    kind: Literal["byte-level", "sentencepiece", "spaces", "plain"]
    leading_space: Literal["kept", "stripped"] = "kept"


def from_tokenizer(tokenizer: Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """See `Vocabulary.from_tokenizer`."""
    if hasattr(tokenizer, "decode_single_token_bytes"):
        return from_tiktoken(tokenizer, size=size, eos_ids=eos_ids)
    if hasattr(tokenizer, "id_to_piece") and hasattr(tokenizer, "is_control") and hasattr(tokenizer, "normalize"):
        return from_sentencepiece(tokenizer, size=size, eos_ids=eos_ids)
    if type(tokenizer).__module__.startswith("mistral_common."):
        return from_mistral(tokenizer, size=size, eos_ids=eos_ids)
    if type(tokenizer).__name__ == "MistralCommonBackend":
        return from_mistral(tokenizer.tokenizer, size=size, eos_ids=eos_ids)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None and type(tokenizer).__module__.split(".")[0] == "tokenizers":
        tokenizer = fast = getattr(tokenizer, "_tokenizer", tokenizer)  # tokenizers.implementations wrap one
    if fast is not None:
        return from_fast(tokenizer, fast, size=size, eos_ids=eos_ids)
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return from_slow(tokenizer, size=size, eos_ids=eos_ids)
    if isinstance(tokenizer, (str, PathLike)):
        raise VocabularyError(
            f"the tokenizer is {shorten_text(repr(tokenizer), 100)}, which is a name",
            hint="Give the tokenizer itself; Vocabulary.from_pretrained takes a name or folder.",
        )
    raise VocabularyError(f"{type(tokenizer).__name__} is not a tokenizer that constrain can read", hint=LIST_HINT)


def from_fast(tokenizer: Any, fast: Any, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return the Vocabulary of a `tokenizers.Tokenizer` (`fast`), alone or wrapped in a transformers tokenizer."""
    name = name_tokenizer(tokenizer)
    spelling = read_spelling(fast, name)
    spell = make_speller(spelling)
    base = fast.get_vocab(with_added_tokens=False)
    count = max((*fast.get_vocab().values(), -1)) + 1
    if count > MOST_TOKENS:
        raise VocabularyError(f"{name} assigns the id {count - 1}; at most {MOST_TOKENS:,} tokens are read")
    tokens: list[bytes | None] = [None] * count
    for piece, index in base.items():
        tokens[index] = spell(piece)
    unknown = unknown_ids(fast, base)
    special = {fast.id_to_token(index): index for index in unknown}
    for index, added in fast.get_added_tokens_decoder().items():
        if added.special:
            special[added.content] = index
        elif base.get(added.content) != index:
            tokens[index] = added.content.encode()
    if fast is not tokenizer:
        special.update({str(fast.id_to_token(i)): i for i in tokenizer.all_special_ids if i < len(tokens)})
    ends = declared_ends(tokenizer, special) if eos_ids is None else eos_ids
    encode, prompt = make_tokenizer_encoders(tokenizer, fast)
    out = Vocabulary.from_tokens(
        tokens,
        ends,
        special=special,
        size=size,
        encode=encode,
        encode_prompt=prompt,
        leading_space=spelling.leading_space,
        name=name,
    )
    run_self_test(out, encode, read_conduct(fast, spelling, unknown), tokens)
    return out


def token_bytes(tokenizer: Any, ids: list[int]) -> list[bytes | None]:
    """Return the bytes of some tokens, None for those that are special or unknown to the tokenizer.

    Only these are derived for a Hugging Face tokenizer, and the whole Vocabulary for others.
    """
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None and type(tokenizer).__module__.split(".")[0] == "tokenizers":
        fast = getattr(tokenizer, "_tokenizer", tokenizer)
    if fast is None:
        tokens = from_tokenizer(tokenizer, eos_ids=[0]).tokens
        return [tokens[index] if index < len(tokens) else None for index in ids]
    spell = make_speller(read_spelling(fast, name_tokenizer(tokenizer)))
    added = {
        index: None if one.special else one.content.encode() for index, one in fast.get_added_tokens_decoder().items()
    }
    base = fast.get_vocab(with_added_tokens=False)
    byte_strings: list[bytes | None] = []
    for index in ids:
        piece = fast.id_to_token(index)
        if piece is None:
            byte_strings.append(None)
        else:
            byte_strings.append(spell(piece) if base.get(piece) == index else added.get(index))
    return byte_strings


def from_slow(tokenizer: Any, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return the Vocabulary of a Python tokenizer: SentencePiece (`sp_model`) or byte-level (`byte_decoder`)."""
    name = name_tokenizer(tokenizer)
    if hasattr(tokenizer, "sp_model"):
        # Decoding with sentencepiece drops the first space, whether or not encoding prepends one.
        spelling = PieceSpelling("sentencepiece", "stripped")
    elif hasattr(tokenizer, "byte_decoder"):
        spelling = PieceSpelling("byte-level")
    else:
        raise VocabularyError(
            f"{name} is written in Python and has neither sp_model nor byte_decoder: its tokens have no bytes",
            hint=f"Load the fast tokenizer (use_fast=True). {LIST_HINT}",
        )
    spell = make_speller(spelling)
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    tokens: list[bytes | None] = [None if piece is None else spell(piece) for piece in pieces]
    special = {pieces[i]: i for i in tokenizer.all_special_ids if i < len(pieces)}
    for index, added in tokenizer.added_tokens_decoder.items():
        if added.special:
            special[added.content] = index
        elif index < len(tokens):
            tokens[index] = added.content.encode()
    if (model := getattr(tokenizer, "sp_model", None)) is not None:
        for index, piece in enumerate(model.id_to_piece(list(range(model.vocab_size())))):
            if model.is_control(index) or model.is_unused(index) or model.is_unknown(index):
                special[piece] = tokenizer.convert_tokens_to_ids(piece)  # not `index`: some classes shift their ids
    ends = declared_ends(tokenizer, special) if eos_ids is None else eos_ids
    encode, prompt = make_tokenizer_encoders(tokenizer, None)
    out = Vocabulary.from_tokens(
        tokens,
        ends,
        special=special,
        size=size,
        encode=encode,
        encode_prompt=prompt,
        leading_space=spelling.leading_space,
        name=name,
    )
    normal = str if model is None else lambda text: str(model.normalize(text)).replace(SPACE, " ")
    run_self_test(out, encode, TokenizerConduct(normal, "before", frozenset(ids_of(tokenizer.unk_token_id))), tokens)
    return out


def make_tokenizer_encoders(tokenizer: Any, fast: Any) -> tuple[Encode, Encode]:
    """Return two encoders: without special tokens, and as a prompt. Neither truncates nor pads."""
    if fast is tokenizer:
        if fast.truncation is not None or fast.padding is not None:  # leave the caller's own as it is
            fast = type(fast).from_str(fast.to_str())
            fast.no_truncation()
            fast.no_padding()
        return (
            lambda text: list(fast.encode(text, add_special_tokens=False).ids),
            lambda text: list(fast.encode(text).ids),
        )
    return (
        lambda text: list(tokenizer.encode(text, add_special_tokens=False)),
        lambda text: list(tokenizer.encode(text)),
    )


def read_spelling(fast: Any, name: str) -> PieceSpelling:
    """Return how pieces become text: from the decoder or, if there is none, from normalizer and pre-tokenizer."""
    model = type(fast.model).__name__
    if model in ("WordPiece", "WordLevel"):
        raise refuse_tokenizer(name, model, "spaces are between its tokens, not in them")
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if getattr(fast.model, affix, None):
            raise refuse_tokenizer(name, f"{model} with {affix}", "spaces are between its tokens, not in them")
    steps = list(flatten_component(read_component(fast.decoder), "decoders"))
    if not steps:
        before = [
            *flatten_component(read_component(fast.pre_tokenizer), "pretokenizers"),
            *flatten_component(read_component(fast.normalizer), "normalizers"),
        ]
        steps = [step for step in before if step["type"] in {"ByteLevel", "Metaspace"}]
    fallback = bool(getattr(fast.model, "byte_fallback", False))
    spaces: Literal["sentencepiece", "spaces"] = (
        "sentencepiece" if fallback or any(step["type"] == "ByteFallback" for step in steps) else "spaces"
    )
    spelling = PieceSpelling("sentencepiece" if fallback else "plain")
    fused = False
    for step in steps:
        kind = step["type"]
        if kind == "ByteLevel":
            spelling = PieceSpelling("byte-level", spelling.leading_space)
        elif kind == "Metaspace" and step.get("replacement", SPACE) == SPACE:
            scheme = step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
            spelling = PieceSpelling(spaces, "kept" if scheme == "never" else "stripped")
        elif kind == "ByteFallback" or step == REPLACE:
            spelling = PieceSpelling(spaces, spelling.leading_space)
        elif kind == "Fuse":
            fused = True
        elif kind == "Strip" and fused and (step["content"], step["start"], step["stop"]) == (" ", 1, 0):
            spelling = PieceSpelling(spelling.kind, "stripped")
        else:
            raise refuse_tokenizer(
                name, f"the decoder {json.dumps(step)}", "the text of a token depends on its position"
            )
    return spelling


def read_conduct(fast: Any, spelling: PieceSpelling, unknown: frozenset[int]) -> TokenizerConduct:
    """Return what the tokenizer does to a text before splitting it, for the self-test."""
    normalizers = list(flatten_component(read_component(fast.normalizer), "normalizers"))
    plain = all(step["type"] != "ByteLevel" for step in normalizers)
    spaced = any(
        step["type"] == "Prepend"
        or (step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        or (step["type"] == "ByteLevel" and step.get("add_prefix_space", False))
        for step in (*normalizers, *flatten_component(read_component(fast.pre_tokenizer), "pretokenizers"))
    )

    def normal(text: str) -> str:
        if normalizers and plain:
            text = fast.normalizer.normalize_str(text)
        return text.replace(SPACE, " ") if spelling.kind in ("sentencepiece", "spaces") else text

    return TokenizerConduct(normal, "before" if spaced else "none", unknown)


def make_speller(spelling: PieceSpelling) -> Callable[[str], bytes]:
    """Return the function from a piece to its bytes."""
    if spelling.kind == "sentencepiece":
        return piece_bytes
    if spelling.kind == "spaces":
        return lambda piece: piece.replace(SPACE, " ").encode()
    if spelling.kind == "plain":
        return str.encode
    table = byte_level_map()

    def spell(piece: str) -> bytes:
        try:
            return piece.translate(table).encode("latin-1")
        except UnicodeEncodeError:  # not in the map: such a piece is literal text
            return piece.encode()

    return spell


def byte_level_map() -> dict[int, str]:
    """Return the table from GPT-2's characters to the character whose code is the byte; others map beyond Latin-1.

    Printable bytes map to themselves, the other 68 to U+0100 upwards (gpt-2/src/encoder.py, bytes_to_unicode).
    """
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [value for value in range(256) if value not in set(printing)]
    table = {value: chr(0xFFFF) for value in others}  # a raw space or control character is not in the map
    table.update({0x100 + i: chr(value) for i, value in enumerate(others)})
    return table


def unknown_ids(fast: Any, base: Mapping[str, int]) -> frozenset[int]:
    """Return the token for text that the model cannot encode."""
    if (piece := getattr(fast.model, "unk_token", None)) is not None:
        return frozenset({base[piece]}) if piece in base else frozenset()
    if type(fast.model).__name__ == "Unigram":
        index = json.loads(fast.model.__getstate__()).get("unk_id")
        return frozenset(ids_of(index))
    return frozenset()


def declared_ends(tokenizer: Any, special: Mapping[str, int]) -> list[int]:
    """Return the end tokens that a tokenizer declares (`eos_token_id`).

    A bare `tokenizers.Tokenizer` declares none: VocabularyError.
    """
    return check_names(ids_of(getattr(tokenizer, "eos_token_id", None)), special, name_tokenizer(tokenizer))


def read_component(component: Any) -> dict[str, Any] | None:
    """Return the JSON of a component of a fast tokenizer, as in tokenizer.json."""
    if component is None:
        return None
    component_data: dict[str, Any] = json.loads(component.__getstate__())
    return component_data


def flatten_component(component: dict[str, Any] | None, inner: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of a component, with sequences flattened."""
    if component is None:
        return
    if component["type"] == "Sequence":
        for step in component[inner]:
            yield from flatten_component(step, inner)
    else:
        yield component


def refuse_tokenizer(name: str, feature: str, why: str) -> VocabularyError:
    """Return the error of a tokenizer whose tokens have no bytes of their own."""
    return VocabularyError(f"{name} cannot be read as bytes: it is {feature}, and {why}", hint=LIST_HINT)


def name_tokenizer(tokenizer: Any) -> str:
    """Return the name of a tokenizer for messages."""
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
