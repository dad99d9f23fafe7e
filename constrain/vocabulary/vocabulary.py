"""Vocabulary: the tokens of a language model as bytes.

    from_pretrained, from_tokenizer, from_tiktoken, from_mistral    derive and test the bytes (integrations/)
    from_tokens, bytes                                              use the given bytes
                     |
                     v
    Vocabulary: tokens, eos_ids, special   ->   blob, offsets (for the trie), fingerprint (for caches)

The bytes of a token are those that it adds in the *middle* of a text: SentencePiece's `▁the` is b" the". Some
tokenizers drop that space when they decode the start of a text; this does not concern a text that continues a prompt,
so `text` and `decode` join the bytes, and return byte for byte what a Constraint accepted. Special tokens, end tokens,
padding and unassigned ids are None: they never match text. In `blob`, special tokens that are not end tokens are
spelled by a name, a byte string that is not valid UTF-8 (see `token_names`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from os import PathLike
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ..base.errors import VocabularyError, check_choice, check_count, check_type, describe_value, shorten_text
from ..base.extensions import find_extension
from .token_names import FIRST, NAME, token_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_BYTES", "MOST_TOKENS", "Encode", "Vocabulary", "name_special_tokens"]

Encode = Callable[[str], "list[int]"]
Octets: TypeAlias = bytes
"""`bytes`, under a name that `Vocabulary.bytes` does not shadow."""
NAMED = re.compile(rb"(\xff[\xc0\xc1\xf5-\xfe]{%d})" % (NAME - 1))
MOST_TOKENS = 1 << 23
"""Most tokens of a vocabulary, since kernels pack a token and a byte into an int32.

The largest known vocabularies have 262,144.
"""
MOST_BYTES = (1 << 22) - 2
"""Most bytes of all tokens together. Each byte is a trie node, and kernels pack a node and a byte into an int32.

About as many nodes again are reserved for tries derived from it (`mask_table.TRIE_WORDS`). 262,144 tokens have about
2 MB.
"""
SENTINELS = ("\n", "a", "0", ".")
"""Texts prepended to another to find its tokens in the middle of a text.

In any tokenizer one of them is separated from what follows.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The tokens of a language model. Immutable; vocabularies with equal fingerprints are equal.

    Create one with a class method: `from_pretrained`, `from_tokenizer`, `from_tokens`, `from_tiktoken`, `from_mistral`
    or `bytes`.

    Attributes
    ----------
    tokens : tuple of bytes or None
        The bytes of each token id. None (special, end, padding) never matches text; b"" is never allowed. Several ids
        may have the same bytes. The length is `size`, the width of the model's logits.
    eos_ids : tuple of int
        The tokens that end a text, ascending, at least one.
    special : Mapping of str to int
        The id of each special token by name.
    names : Mapping of int to bytes
        The name in bytes of each special token that is not an end token, by id.
    blob : bytes
        The bytes of all tokens, concatenated.
    offsets : ndarray of int32, shape (size + 1,), read-only
        Token `i` is `blob[offsets[i]:offsets[i + 1]]`: the name of a special token, empty for other tokens that are
        None and for tokens that contain a byte 0xFF, which is reserved for names.
    fingerprint : str
        Digest of everything that masks depend on.
    encode : callable or None
        Returns the token ids of a str, as the tokenizer encodes it at the start of a text, without special tokens
        added.
    encode_prompt : callable or None
        As `encode`, with what the model expects around a prompt (usually a begin token).
    leading_space : {"kept", "stripped"}
        "stripped" if the tokenizer's own decoding drops one space at the start of a text; `decode` never does.
    name : str
        A name for messages.
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
        """Create a vocabulary from the bytes of each token, in order of ids.

        Parameters
        ----------
        tokens : iterable of bytes or None
            The bytes of each token. End tokens and special tokens become None.
        eos_ids : iterable of int
            The tokens that end a text, at least one.
        special : Mapping of str to int, optional
            The id of each special token by name. Ids outside the vocabulary are dropped.
        size : int, optional
            Width of the model's logits. If it exceeds the number of tokens, the rest is padding, which is never
            allowed. If it is less, the tokens beyond it are dropped, since the model cannot produce them.
        encode, encode_prompt : callable, optional
            Functions from str to a list of token ids, see the attributes. `encode_prompt` defaults to `encode`.
        leading_space : {"kept", "stripped"}
            See the attributes.
        name : str
            A name for messages.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            If there is no end token, an end token is not an id below `size`, a token is neither bytes nor None, or
            there are too many tokens or bytes.
        TypeError
            If an argument has the wrong type.
        """
        if isinstance(tokens, (str, Octets)) or not isinstance(tokens, Iterable):
            raise TypeError(f"tokens is {describe_value(tokens)}: give the bytes of each token, None for special ones")
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
                f"a vocabulary needs at least one token, at most {MOST_TOKENS:,}, not {shorten_text(width, 40)}",
                hint="size= is the width of the logits.",
            )
        del listed[width:]
        listed += [None] * (width - len(listed))
        ends = check_ends(eos_ids, width)
        known = {key: int(index) for key, index in (special or {}).items() if 0 <= index < width}
        for index in (*ends, *known.values()):
            listed[index] = None
        names = name_special_tokens(known, ends)
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
            fingerprint=fingerprint_tokens(blob, offsets, ends, known),
            encode=encode,
            encode_prompt=encode_prompt or encode,
            leading_space=leading_space,
            name=name,
        )

    @classmethod
    def bytes(cls) -> Vocabulary:
        """Return the vocabulary of the 256 one-byte tokens, followed by one end token with id 256.

        Returns
        -------
        Vocabulary
        """
        tokens = [bytes((value,)) for value in range(256)]
        return cls.from_tokens([*tokens, None], (256,), special={"<end>": 256}, encode=encode_bytes, name="bytes")

    @classmethod
    def from_pretrained(
        cls, source: str | PathLike[str], *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Create the vocabulary of a pretrained model.

        Parameters
        ----------
        source : path-like
            The folder of a model, an id on the Hugging Face hub, or a tokenizer file (tokenizer.json, *.model,
            tekken*.json, *.tiktoken).
        size : int, optional
            Width of the model's logits, if it differs from the tokenizer's.
        eos_ids : iterable of int, optional
            End tokens, if they differ from the tokenizer's.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            If the bytes of the tokens cannot be derived, or there is no end token.
        """
        size = None if size is None else check_count("size", size, 1)
        out: Vocabulary = find_extension("read_pretrained")(source, size=size, eos_ids=eos_ids)
        return out

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Create the vocabulary of a loaded tokenizer.

        Parameters
        ----------
        tokenizer : object
            A tokenizer of transformers, tokenizers, tiktoken, sentencepiece or mistral-common.
        size : int, optional
            Width of the model's logits, if it differs from the tokenizer's.
        eos_ids : iterable of int, optional
            End tokens, if they differ from the tokenizer's.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            If the bytes of the tokens cannot be derived, or there is no end token.
        """
        size = None if size is None else check_count("size", size, 1)
        out: Vocabulary = find_extension("read_tokenizer")(tokenizer, size=size, eos_ids=eos_ids)
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
        """Create the vocabulary of tiktoken ranks.

        Parameters
        ----------
        source : path-like, Mapping of bytes to int, or tiktoken.Encoding
            A rank file, the rank of each token, or an encoding.
        special : Mapping of str to int, optional
            The id of each special token by name. Ranks do not contain them; only those of Llama 3 are recognised.
        eos_ids : iterable of int, optional
            End tokens.
        pattern : str, optional
            The regular expression by which the encoding splits text before merging. Needed only for `encode`.
        size : int, optional
            Width of the model's logits, if it differs from the tokenizer's.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            If the bytes of the tokens cannot be derived, or there is no end token.
        """
        out: Vocabulary = find_extension("read_tiktoken")(
            source, special=special, eos_ids=eos_ids, pattern=pattern, size=size
        )
        return out

    @classmethod
    def from_mistral(
        cls, source: str | PathLike[str] | Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Create the vocabulary of a mistral-common tokenizer.

        Parameters
        ----------
        source : path-like or tokenizer
            The tokenizer or its file: SentencePiece (*.model*) or Tekken (tekken*.json).
        size : int, optional
            Width of the model's logits, if it differs from the tokenizer's.
        eos_ids : iterable of int, optional
            End tokens, if they differ from the tokenizer's.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            If the bytes of the tokens cannot be derived, or there is no end token.
        """
        out: Vocabulary = find_extension("read_mistral")(source, size=size, eos_ids=eos_ids)
        return out

    @property
    def size(self) -> int:
        """The number of tokens: the width of the model's logits, including padding."""
        return len(self.tokens)

    @property
    def strips_leading_space(self) -> bool:
        """Whether the tokenizer's own decoding drops one space at the start of a text; `decode` never does."""
        return self.leading_space == "stripped"

    @cached_property
    def missing_bytes(self) -> frozenset[int]:
        """The bytes that no one-byte token spells; a text that contains one may have no tokenisation.

        0xFF is never included, since no UTF-8 text contains it.
        """
        lengths = np.diff(self.offsets)
        firsts = np.frombuffer(self.blob, np.uint8)[self.offsets[:-1][lengths == 1]]
        return frozenset(range(FIRST)) - frozenset(firsts.tolist())

    def spelled(self, index: int) -> Octets:
        """Return the bytes of a token in `blob`: a special token is spelled by its name in bytes.

        Raise VocabularyError if there is no such token.
        """
        index = check_id("index", index)
        if not -1 < index < len(self.tokens):
            raise VocabularyError(f"there is no token {shorten_text(index, 40)}: the vocabulary has {self.size}")
        return self.blob[self.offsets[index] : self.offsets[index + 1]]

    @cached_property
    def shown(self) -> Mapping[int, Octets]:
        """The name in the tokenizer of each special token that is not an end token, as UTF-8 by id."""
        return {index: name.encode() for name, index in reversed(list(self.special.items())) if index in self.names}

    def transcript(self, ids: Iterable[int]) -> Octets:
        """Return the bytes of a sequence of tokens, with special tokens spelled by their names in the tokenizer.

        End tokens contribute nothing.

        Parameters
        ----------
        ids : iterable of int
            Token ids.

        Returns
        -------
        bytes
        """
        shown, ids = self.shown, check_ids(ids)
        return b"".join(shown[index] if index in shown else self.text((index,)) for index in ids)

    def text(self, ids: Iterable[int]) -> Octets:
        """Return the concatenated bytes of a sequence of tokens. Special tokens and end tokens contribute nothing.

        Parameters
        ----------
        ids : iterable of int
            Token ids.

        Returns
        -------
        bytes

        Raises
        ------
        VocabularyError
            If an id is not in the vocabulary.
        """
        pieces = []
        for index in check_ids(ids):
            if not 0 <= index < len(self.tokens):
                raise VocabularyError(f"there is no token {index}: the vocabulary has {self.size}")
            pieces.append(self.tokens[index] or b"")
        return b"".join(pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """Return `text(ids)` decoded as UTF-8, with incomplete or invalid characters as U+FFFD.

        Parameters
        ----------
        ids : iterable of int
            Token ids.

        Returns
        -------
        str
        """
        return self.text(ids).decode("utf-8", "replace")

    def tokenize(self, data: Octets) -> list[int]:
        """Return tokens that spell exactly `data` in the middle of a text.

        The tokenizer's own choice is preferred; if it is not available, the fewest tokens are returned. Names of
        special tokens (`names`) become these tokens.

        Parameters
        ----------
        data : bytes
            The bytes to spell.

        Returns
        -------
        list of int

        Raises
        ------
        VocabularyError
            If no tokens spell `data`.
        """
        check_type("data", data, Octets, "give bytes, such as text.encode()")
        if FIRST in data and self.names:
            return [index for part in NAMED.split(data) if part for index in self._part(part)]
        return self._part(data)

    def _part(self, data: Octets) -> list[int]:
        """Tokenise bytes without names of special tokens."""
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
        """Return the tokens after those that spell `head`, which may have a space before it.

        Return an empty list if no token boundary follows `head`.
        """
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
        """Return the fewest tokens that spell `data`; among equals, those with the longest first token.

        Uses dynamic programming. Raise VocabularyError if no tokens spell `data`.
        """
        check_type("data", data, Octets, "give bytes, such as text.encode()")
        ids, lengths = self.by_bytes
        best: list[tuple[int, int, int]] = [(0, 0, 0)]  # by suffix length: count, -length of the first, its id
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
            raise VocabularyError(f"no tokens of this vocabulary spell {show_bytes(data)}")
        out, at = [], 0
        while at < len(data):
            _, length, index = best[len(data) - at]
            out.append(index)
            at -= length
        return out

    @cached_property
    def by_bytes(self) -> tuple[dict[Octets, int], tuple[int, ...]]:
        """The smallest id for each token text, and the lengths of token texts, ascending."""
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
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the tokens and their meaning, not what is derived from them.

        `encode` and `encode_prompt` are pickled unless they are lambdas or local functions, as those of most tokenizers
        are. The copy then has None, and its `tokenize` returns the fewest tokens.
        """
        encoders = tuple(None if is_local(one) else one for one in (self.encode, self.encode_prompt))
        how = (tuple(self.special.items()), self.leading_space, self.name, *encoders)
        return restore_vocabulary, (self.fingerprint, self.tokens, self.eos_ids, *how)

    def __repr__(self) -> str:
        names = {index: key for key, index in self.special.items()}
        ends = ", ".join(f"{index} {names.get(index, '')}".rstrip() for index in self.eos_ids)
        return f"Vocabulary({self.name}: {self.size} tokens, ends at {ends}, fingerprint {self.fingerprint[:12]})"


def encode_bytes(text: str) -> list[int]:
    """Return the tokens of `Vocabulary.bytes` that spell a text."""
    return list(text.encode())


def is_local(function: object) -> bool:
    """Return whether a function has no importable name, so that it cannot be pickled."""
    return "<" in getattr(function, "__qualname__", "")


@cache
def restored_vocabularies() -> WeakValueDictionary[tuple[Any, ...], Vocabulary]:
    """Return the registry of vocabularies unpickled in this process.

    Equal ones share one object, and so its mask table.
    """
    return WeakValueDictionary()


def restore_vocabulary(
    fingerprint: str,
    tokens: tuple[bytes | None, ...],
    eos_ids: tuple[int, ...],
    special: tuple[tuple[str, int], ...],
    leading_space: Literal["kept", "stripped"],
    name: str,
    encode: Encode | None,
    encode_prompt: Encode | None,
) -> Vocabulary:
    """Return the vocabulary of a pickled one. Raise VocabularyError if the fingerprint does not match."""
    key = fingerprint, leading_space, name, encode is None, encode_prompt is None
    found = restored_vocabularies().get(key)
    if found is not None:
        return found
    made = Vocabulary.from_tokens(
        tokens, eos_ids, special=dict(special), encode=encode, encode_prompt=encode_prompt,
        leading_space=leading_space, name=name,
    )  # fmt: skip
    if made.fingerprint != fingerprint:
        raise VocabularyError("what was pickled is not the vocabulary that it says it is")
    return restored_vocabularies().setdefault(key, made)


def check_id(name: str, value: Any) -> int:
    """Return a token id as an int. Raise TypeError if it is not an integer."""
    try:
        return check_count(name, value)
    except ValueError:
        return int(value)  # a negative id: the caller reports it


def check_ids(ids: Iterable[int]) -> list[int]:
    """Return token ids as ints. Raise TypeError if one is not an integer."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {describe_value(ids)}: give a list of token ids")
    return [index if type(index) is int else check_id("a token id", index) for index in ids]


def check_arguments(special: object, encode: object, encode_prompt: object, name: object) -> None:
    """Raise TypeError if an argument of `from_tokens` has the wrong type."""
    check_type("special", special, (Mapping, NoneType), "give a dict of name -> token id")
    if isinstance(special, Mapping):
        for key, index in special.items():
            check_type("a name in special", key, str, "give a dict of name -> token id")
            check_id("an id in special", index)
    for what, function in (("encode", encode), ("encode_prompt", encode_prompt)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} is {describe_value(function)}: give a function from text to token ids")
    check_type("name", name, str, "give a text")


def check_ends(eos_ids: Iterable[int], width: int) -> tuple[int, ...]:
    """Return the distinct end tokens, ascending. Raise VocabularyError if there are none, or one is not an id."""
    if isinstance(eos_ids, (str, bytes)) or not isinstance(eos_ids, Iterable):
        raise TypeError(f"eos_ids is {describe_value(eos_ids)}: give a list of token ids")
    ends = sorted({check_id("an id of eos_ids", index) for index in eos_ids})
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


def name_special_tokens(special: Mapping[str, int], ends: Sequence[int]) -> dict[int, bytes]:
    """Return the name in bytes of each special token that is not an end token, by id."""
    within = sorted(set(special.values()) - set(ends))
    return {index: token_name(number) for number, index in enumerate(within)}


def fingerprint_tokens(blob: bytes, offsets: NDArray[np.int32], ends: Sequence[int], special: Mapping[str, int]) -> str:
    """Return the hex digest of everything that masks depend on.

    The first field is the version of this serialisation.
    """
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


def show_bytes(data: bytes) -> str:
    """Return an abbreviated repr of bytes, for messages."""
    return f"{data[:48]!r}{'...' if len(data) > 48 else ''}"
