"""The tokens of a language model as bytes: what a token adds to a text, and nothing else about it.

    from_pretrained, from_tokenizer, from_tiktoken, from_mistral    derive and test the bytes (integrations/)
    from_tokens, bytes                                              take them as they are
                     |
                     v
    Vocabulary: tokens, eos_ids, special   ->   blob, offsets (for the trie), fingerprint (for caches)

A token's bytes are those it adds in the *middle* of a text: SentencePiece's `▁the` is b" the". What some
tokenizers do at the very start of a text (drop that space again when decoding) is no affair of a text that
goes on after a prompt: `text` and `decode` join the bytes, so what they give is what a Constraint accepted,
byte for byte. Special tokens, end tokens, padding and unassigned ids are None: they never match text. Special tokens
that end no text have a name in bytes that are no text (`symbols`), which stands for them in `blob`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from importlib import import_module
from os import PathLike
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ..errors import VocabularyError, check_choice, check_count, check_type, describe, shorten
from .symbols import FIRST, NAME, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_BYTES", "MOST_TOKENS", "Encode", "Vocabulary", "named"]

Encode = Callable[[str], "list[int]"]
Octets: TypeAlias = bytes
"""`bytes`, where `Vocabulary.bytes` hides the name."""
NAMED = re.compile(rb"(\xff[\xc0\xc1\xf5-\xfe]{%d})" % (NAME - 1))
MOST_TOKENS = 1 << 23
"""Most tokens of a vocabulary: kernels keep a token and a byte in an int32. The largest ones known have 262,144."""
MOST_BYTES = (1 << 22) - 2
"""Most bytes of all tokens together, each a node of a trie: kernels keep a node and a byte in an int32.

As many nodes again, and some, are for what is merged from it (`mask_table.TRIE_WORDS`). 262,144 tokens have some 2 MB.
"""
SENTINELS = ("\n", "a", "0", ".")
"""Texts put before another to see how that one is spelled in the middle; one of them splits off in any tokenizer."""


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Immutable; equal if the fingerprints are.

    tokens: bytes of each token id; None (special, end, padding) never matches text; b"" is never allowed. Several
        ids may have the same bytes. Its length is `size`, the width of the model's logits.
    eos_ids: the tokens that end a text, at least one, ascending. special: name -> id of every special token.
    names: id -> the name in bytes of every special token that is no end token.
    blob: uint8 text of all tokens one after the other; offsets: int32[size + 1], token i is
        blob[offsets[i]:offsets[i + 1]], read-only: its name, if it is special; empty for what is None otherwise, and
        for a token that holds a byte 0xFF, which belongs to names and to no text.
    encode: ids of a text as the tokenizer spells it at the start of a text, no special tokens added; None if unknown.
    encode_prompt: the same with what the model expects around a prompt (a begin token, mostly).
    leading_space: "stripped" if the tokenizer's own decoding drops one space at the start of a text (ours does not).
    """

    tokens: tuple[Octets | None, ...]
    eos_ids: tuple[int, ...]
    special: Mapping[str, int]
    names: Mapping[int, Octets]
    blob: Octets = field(repr=False)
    offsets: NDArray[np.int32] = field(repr=False)
    fingerprint: str
    encode: Encode | None = None
    encode_prompt: Encode | None = None
    leading_space: Literal["kept", "stripped"] = "kept"
    name: str = ""

    @classmethod
    def from_tokens(
        cls,
        tokens: Iterable[Octets | None],
        eos_ids: Iterable[int],
        *,
        special: Mapping[str, int] | None = None,
        size: int | None = None,
        encode: Encode | None = None,
        encode_prompt: Encode | None = None,
        leading_space: Literal["kept", "stripped"] = "kept",
        name: str = "tokens",
    ) -> Vocabulary:
        """From the bytes of each token, in order of ids.

        size: width of the model's logits. Wider than `tokens`: the rest is padding, never allowed. Narrower: the
        model cannot write the tokens beyond, and they are left out. End tokens and special tokens become None.
        Raises VocabularyError if there is no end token, or one is not an id below `size`.
        """
        if isinstance(tokens, (str, Octets)) or not isinstance(tokens, Iterable):
            raise TypeError(f"tokens is {describe(tokens)}: give the bytes of each token, None for special ones")
        check_arguments(special, encode, encode_prompt, name)
        check_choice("leading_space", leading_space, ("kept", "stripped"))
        size = None if size is None else check_count("size", size)
        listed = list(tokens)
        if not set(map(type, listed)) <= {bytes, NoneType}:
            odd = next(i for i, token in enumerate(listed) if token is not None and type(token) is not bytes)
            raise VocabularyError(f"token {odd} is {type(listed[odd]).__name__}, not bytes or None")
        width = len(listed) if size is None else size
        if not 0 < width <= MOST_TOKENS:
            raise VocabularyError(
                f"a vocabulary needs at least one token, and has at most {MOST_TOKENS:,}, not {shorten(width, 40)}",
                hint="size= is the width of the logits.",
            )
        del listed[width:]
        listed += [None] * (width - len(listed))
        ends = checked_ends(eos_ids, width)
        known = {key: int(index) for key, index in (special or {}).items() if 0 <= index < width}
        for index in (*ends, *known.values()):
            listed[index] = None
        names = named(known, ends)
        spelled = [token or b"" for token in listed]
        if FIRST in b"".join(spelled):
            spelled = [b"" if FIRST in token else token for token in spelled]
        for index, octets in names.items():
            spelled[index] = octets
        lengths = np.fromiter(map(len, spelled), np.int64, width)
        total = int(lengths.sum())
        if total > MOST_BYTES:
            raise VocabularyError(f"the tokens hold {total:,} bytes together; at most {MOST_BYTES:,} are read")
        offsets = np.zeros(width + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        offsets.flags.writeable = False
        blob = b"".join(spelled)
        return cls(
            tokens=tuple(listed),
            eos_ids=ends,
            special=MappingProxyType(known),
            names=MappingProxyType(names),
            blob=blob,
            offsets=offsets,
            fingerprint=digest(blob, offsets, ends, known),
            encode=encode,
            encode_prompt=encode_prompt or encode,
            leading_space=leading_space,
            name=name,
        )

    @classmethod
    def bytes(cls) -> Vocabulary:
        """The 256 one-byte tokens, then one end token, 256."""
        tokens = [bytes((value,)) for value in range(256)]
        return cls.from_tokens([*tokens, None], (256,), special={"<end>": 256}, encode=encode_bytes, name="bytes")

    @classmethod
    def from_pretrained(
        cls, source: str | PathLike[str], *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Of a model's folder, a hub id, or a tokenizer file (tokenizer.json, *.model, tekken*.json, *.tiktoken)."""
        size = None if size is None else check_count("size", size, 1)
        out: Vocabulary = integration("pretrained").from_pretrained(source, size=size, eos_ids=eos_ids)
        return out

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Of a loaded tokenizer: transformers, tokenizers, tiktoken, sentencepiece or mistral-common.

        size: width of the model's logits, if not the tokenizer's own; eos_ids: end tokens, if not the tokenizer's.
        """
        size = None if size is None else check_count("size", size, 1)
        out: Vocabulary = integration("tokenizers").from_tokenizer(tokenizer, size=size, eos_ids=eos_ids)
        return out

    @classmethod
    def from_tiktoken(
        cls,
        source: str | PathLike[str] | Mapping[Octets, int] | Any,
        *,
        special: Mapping[str, int] | None = None,
        eos_ids: Iterable[int] | None = None,
        pattern: str | None = None,
        size: int | None = None,
    ) -> Vocabulary:
        """Of tiktoken ranks: a rank file, a mapping bytes -> rank, or a `tiktoken.Encoding`.

        Ranks do not say what is special; only those of Llama 3 are recognised. `pattern`: the regular expression by
        which the encoding cuts text before merging, needed for `encode` alone.
        """
        out: Vocabulary = integration("token_files").from_tiktoken(
            source, special=special, eos_ids=eos_ids, pattern=pattern, size=size
        )
        return out

    @classmethod
    def from_mistral(
        cls, source: str | PathLike[str] | Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Of a mistral-common tokenizer, or of its file: SentencePiece (*.model*) or Tekken (tekken*.json)."""
        out: Vocabulary = integration("token_files").from_mistral(source, size=size, eos_ids=eos_ids)
        return out

    @property
    def size(self) -> int:
        """Number of tokens: the width of the model's logits, padding included."""
        return len(self.tokens)

    @property
    def strips_leading_space(self) -> bool:
        """Whether the tokenizer's own decoding, unlike ours, drops one space at the start of a text."""
        return self.leading_space == "stripped"

    @cached_property
    def missing_bytes(self) -> frozenset[int]:
        """Bytes that no single-byte token spells: a text that needs one may have no spelling at all. Not 0xFF, which no
        text needs."""
        lengths = np.diff(self.offsets)
        firsts = np.frombuffer(self.blob, np.uint8)[self.offsets[:-1][lengths == 1]]
        return frozenset(range(FIRST)) - frozenset(firsts.tolist())

    def spelled(self, index: int) -> Octets:
        """A token as it stands in `blob`: special tokens by their names in bytes."""
        index = as_id("index", index)
        if not -1 < index < len(self.tokens):
            raise VocabularyError(f"there is no token {shorten(index, 40)}: the vocabulary has {self.size}")
        return self.blob[self.offsets[index] : self.offsets[index + 1]]

    @cached_property
    def shown(self) -> Mapping[int, Octets]:
        """id -> what a reader sees of a special token: its name in the tokenizer."""
        return {index: name.encode() for name, index in reversed(list(self.special.items())) if index in self.names}

    def transcript(self, ids: Iterable[int]) -> Octets:
        """`text`, with the special tokens in it as the tokenizer calls them; end tokens add nothing."""
        shown, ids = self.shown, checked_ids(ids)
        return b"".join(shown[index] if index in shown else self.text((index,)) for index in ids)

    def text(self, ids: Iterable[int]) -> Octets:
        """The bytes of these tokens, joined; special and end tokens add nothing."""
        pieces = []
        for index in checked_ids(ids):
            if not 0 <= index < len(self.tokens):
                raise VocabularyError(f"there is no token {index}: the vocabulary has {self.size}")
            pieces.append(self.tokens[index] or b"")
        return b"".join(pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """`text` as a str: exactly the joined bytes, incomplete characters as U+FFFD."""
        return self.text(ids).decode("utf-8", "replace")

    def tokenize(self, data: Octets) -> list[int]:
        """Tokens that spell exactly `data` in the middle of a text: the tokenizer's own choice, else the fewest.

        Names of special tokens (`names`) are these tokens. Raises VocabularyError if no tokens spell it.
        """
        check_type("data", data, Octets, "give bytes, such as text.encode()")
        if FIRST in data and self.names:
            return [index for part in NAMED.split(data) if part for index in self._part(part)]
        return self._part(data)

    def _part(self, data: Octets) -> list[int]:
        if self.encode is not None and FIRST not in data:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                text = ""
            for sentinel in ("", *SENTINELS) if text else ():
                ids = self.rest(self.encode(sentinel + text), sentinel.encode())
                if self.text(ids) == data:
                    return ids
        return self.fewest(data)

    def rest(self, ids: list[int], head: Octets) -> list[int]:
        """The tokens after those that spell `head` (a space may stand before it); none if it does not split off."""
        if not head:
            return ids
        seen = b""
        for count, index in enumerate(ids, 1):
            seen += self.tokens[index] or b""
            if seen in (head, b" " + head):
                return ids[count:]
            if len(seen) > len(head):
                break
        return []

    def fewest(self, data: Octets) -> list[int]:
        """The least number of tokens that spell `data`, the longest first among equals; by dynamic programming."""
        check_type("data", data, Octets, "give bytes, such as text.encode()")
        ids, lengths = self.by_bytes
        best: list[tuple[int, int, int]] = [(0, 0, 0)]  # from the end: tokens needed, minus length of the first, its id
        unreachable = (len(data) + 1, 0, -1)
        for start in range(len(data) - 1, -1, -1):
            found = unreachable
            for length in lengths:
                if start + length > len(data):
                    break
                index = ids.get(data[start : start + length])
                if index is not None:
                    found = min(found, (best[len(data) - start - length][0] + 1, -length, index))
            best.append(found)
        if best[-1][0] > len(data):
            raise VocabularyError(f"no tokens of this vocabulary spell {shown(data)}")
        out, at = [], 0
        while at < len(data):
            _, length, index = best[len(data) - at]
            out.append(index)
            at -= length
        return out

    @cached_property
    def by_bytes(self) -> tuple[dict[Octets, int], tuple[int, ...]]:
        """Bytes -> the least id that has them, and the lengths that occur, ascending."""
        ids = {token: i for i, token in zip(range(self.size - 1, -1, -1), reversed(self.tokens)) if token}
        ids.update((name, index) for index, name in self.names.items())
        return ids, tuple(sorted(set(map(len, ids))))

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Vocabulary:
        return self  # It is immutable.

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the tokens and what they mean, not what was computed from them.

        `encode` and `encode_prompt` are pickled too, unless they are lambdas or local functions, as those of most
        tokenizers are: then the copy has None, and `tokenize` gives the fewest tokens.
        """
        encoders = tuple(None if is_local(one) else one for one in (self.encode, self.encode_prompt))
        how = (tuple(self.special.items()), self.leading_space, self.name, *encoders)
        return restore, (self.fingerprint, self.tokens, self.eos_ids, *how)

    def __repr__(self) -> str:
        names = {index: key for key, index in self.special.items()}
        ends = ", ".join(f"{index} {names.get(index, '')}".rstrip() for index in self.eos_ids)
        return f"Vocabulary({self.name}: {self.size} tokens, ends at {ends}, fingerprint {self.fingerprint[:12]})"


def encode_bytes(text: str) -> list[int]:
    """Return the tokens of `Vocabulary.bytes` that spell a text."""
    return list(text.encode())


def is_local(function: object) -> bool:
    """Whether a function has no name by which another process could find it."""
    return "<" in getattr(function, "__qualname__", "")


@cache
def restored() -> WeakValueDictionary[tuple[Any, ...], Vocabulary]:
    """Return the vocabularies that were unpickled in this process: equal ones are one, and so are their mask tables."""
    return WeakValueDictionary()


def restore(
    fingerprint: str,
    tokens: tuple[bytes | None, ...],
    eos_ids: tuple[int, ...],
    special: tuple[tuple[str, int], ...],
    leading_space: Literal["kept", "stripped"],
    name: str,
    encode: Encode | None,
    encode_prompt: Encode | None,
) -> Vocabulary:
    """Return the vocabulary of a pickled one. Raise VocabularyError if it was damaged."""
    key = fingerprint, leading_space, name, encode is None, encode_prompt is None
    found = restored().get(key)
    if found is not None:
        return found
    made = Vocabulary.from_tokens(
        tokens, eos_ids, special=dict(special), encode=encode, encode_prompt=encode_prompt,
        leading_space=leading_space, name=name,
    )  # fmt: skip
    if made.fingerprint != fingerprint:
        raise VocabularyError("what was pickled is not the vocabulary that it says it is")
    return restored().setdefault(key, made)


def integration(name: str) -> Any:
    """A file of integrations/. Only that room may import the packages of others, so that it is entered when needed,
    by name; what it makes comes back through `from_tokens`."""
    return import_module(f"..integrations.{name}", __package__)


def as_id(name: str, value: Any) -> int:
    """Return a token id as an int; TypeError for what is no whole number."""
    try:
        return check_count(name, value)
    except ValueError:
        return int(value)  # a negative one: whoever asked says what is wrong with it


def checked_ids(ids: Iterable[int]) -> list[int]:
    """Return token ids as ints; TypeError for what is none."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {describe(ids)}: give a list of token ids")
    return [index if type(index) is int else as_id("a token id", index) for index in ids]


def check_arguments(special: object, encode: object, encode_prompt: object, name: object) -> None:
    """Raise TypeError for arguments of `from_tokens` of the wrong type."""
    check_type("special", special, (Mapping, NoneType), "give a dict of name -> token id")
    if isinstance(special, Mapping):
        for key, index in special.items():
            check_type("a name in special", key, str, "give a dict of name -> token id")
            as_id("an id in special", index)
    for what, function in (("encode", encode), ("encode_prompt", encode_prompt)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} is {describe(function)}: give a function from text to token ids")
    check_type("name", name, str, "give a text")


def checked_ends(eos_ids: Iterable[int], width: int) -> tuple[int, ...]:
    """The end tokens, ascending, without repeats; VocabularyError if there is none or one is no id."""
    if isinstance(eos_ids, (str, bytes)) or not isinstance(eos_ids, Iterable):
        raise TypeError(f"eos_ids is {describe(eos_ids)}: give a list of token ids")
    ends = sorted({as_id("an id of eos_ids", index) for index in eos_ids})
    if not ends:
        raise VocabularyError(
            "there is no end token: a constrained text could never end",
            hint="Name the ids of the tokens that end a text with eos_ids=[...].",
        )
    for index in ends:
        if not 0 <= index < width:
            raise VocabularyError(
                f"end token {index} is not among the {width} tokens of the vocabulary",
                hint="eos_ids= names the right ones; size= is the width of the model's logits.",
            )
    return tuple(ends)


def named(special: Mapping[str, int], ends: Sequence[int]) -> dict[int, bytes]:
    """id -> the name in bytes of every special token that is no end token."""
    within = sorted(set(special.values()) - set(ends))
    return {index: name_of(number) for number, index in enumerate(within)}


def digest(blob: bytes, offsets: NDArray[np.int32], ends: Sequence[int], special: Mapping[str, int]) -> str:
    """Hex digest of all that masks depend on; the first field is the version of this very layout."""
    out = blake2b(b"constrain vocabulary 2", digest_size=16)
    for part in (
        offsets.astype("<i4").tobytes(),
        blob,
        np.array(ends, "<i4").tobytes(),
        repr(sorted(special.items(), key=lambda item: (item[1], item[0]))).encode(),
    ):
        out.update(len(part).to_bytes(8, "little"))
        out.update(part)
    return out.hexdigest()


def shown(data: bytes) -> str:
    """A few bytes for a message."""
    return f"{data[:48]!r}{'...' if len(data) > 48 else ''}"
