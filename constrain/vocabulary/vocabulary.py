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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ..base.cached_property import cached_property
from ..base.errors import VocabularyError, check_choice, check_count, check_type, describe_value, shorten_text
from ..base.extensions import find_extension
from ..base.keyword_names import explain_attributes, explain_keywords
from .text_tokenisation import Encode, RecentSpellings, encode_continuation, find_fewest_tokens, list_lengths_by_head
from .token_bytes import fingerprint_tokens, name_special_tokens, spell_tokens
from .token_names import FIRST, NAME
from .vocabulary_arguments import check_arguments, check_ends, check_id, check_ids, check_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Vocabulary"]

Octets: TypeAlias = bytes
"""`bytes`, under a name that `Vocabulary.bytes` does not shadow."""
NAMED = re.compile(rb"(\xff[\xc0\xc1\xf5-\xfe]{%d})" % (NAME - 1))


FOREIGN_ATTRIBUTES = dict.fromkeys(
    ("from_model", "from_huggingface", "from_transformers", "from_hub", "create"),
    'Vocabulary.from_pretrained("demo") or Vocabulary.from_tokenizer(tokenizer)',
)


@explain_attributes(FOREIGN_ATTRIBUTES)
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
            Width of the model's logits. If it exceeds the number of tokens, the others are padding, which is never
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
        listed = check_tokens(tokens, size)
        width = len(listed)
        ends = check_ends(eos_ids, width)
        known = {key: int(index) for key, index in (special or {}).items() if 0 <= index < width}
        for index in (*ends, *known.values()):
            listed[index] = None
        names = name_special_tokens(known, ends)
        blob, offsets = spell_tokens(listed, names)
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
    @explain_keywords
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
    @explain_keywords
    def from_tokenizer(
        cls, tokenizer: Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
    ) -> Vocabulary:
        """Create the vocabulary of a loaded tokenizer.

        Parameters
        ----------
        tokenizer : object
            A tokenizer of transformers, tokenizers, tiktoken, sentencepiece or mistral-common.
        size, eos_ids
            As for `from_pretrained`.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            As for `from_pretrained`.
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
        pattern : str, optional
            The regular expression by which the encoding splits text before merging. Needed only for `encode`.
        size, eos_ids
            As for `from_pretrained`.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            As for `from_pretrained`.
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
        size, eos_ids
            As for `from_pretrained`.

        Returns
        -------
        Vocabulary

        Raises
        ------
        VocabularyError
            As for `from_pretrained`.
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
    def original_names(self) -> Mapping[int, Octets]:
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
        names, ids = self.original_names, check_ids(ids)
        return b"".join(names[index] if index in names else self.text((index,)) for index in ids)

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
        known = self._recent_spellings.get(data)
        if known is not None:
            return list(known)
        parts = [part for part in NAMED.split(data) if part] if FIRST in data and self.names else [data]
        tokens = [index for part in parts for index in self._tokenize_text(part)]
        self._recent_spellings.keep(data, tokens)
        return tokens

    def _tokenize_text(self, data: Octets) -> list[int]:
        """Tokenise bytes without names of special tokens."""
        ids = None
        if self.encode is not None and FIRST not in data:
            ids = encode_continuation(data, self.encode, self.tokens, self.text)
        return self.fewest(data) if ids is None else ids

    def fewest(self, data: Octets) -> list[int]:
        """Return the fewest tokens that spell `data`; among equals, those with the longest first token.

        Raise VocabularyError if no tokens spell `data`.
        """
        check_type("data", data, Octets, "give bytes, such as text.encode()")
        return find_fewest_tokens(data, self.by_bytes[0], self._lengths_by_head)

    @cached_property
    def by_bytes(self) -> tuple[dict[Octets, int], tuple[int, ...]]:
        """The smallest id for each token text, and the lengths of token texts, ascending."""
        ids = {token: i for i, token in zip(range(self.size - 1, -1, -1), reversed(self.tokens)) if token}
        ids.update((name, index) for index, name in self.names.items())
        return ids, tuple(sorted(set(map(len, ids))))

    @cached_property
    def _lengths_by_head(self) -> dict[Octets, tuple[int, ...]]:
        """For `fewest`."""
        return list_lengths_by_head(self.by_bytes[0])

    @cached_property
    def _recent_spellings(self) -> RecentSpellings:
        """For `tokenize`."""
        return RecentSpellings()

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

    def _repr_html_(self) -> str:
        """Return the size, the special tokens and a sample, for notebooks."""
        shown: str = find_extension("show_vocabulary")(self)
        return shown

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
    known = restored_vocabularies().get(key)
    if known is not None:
        return known
    vocabulary = Vocabulary.from_tokens(
        tokens, eos_ids, special=dict(special), encode=encode, encode_prompt=encode_prompt,
        leading_space=leading_space, name=name,
    )  # fmt: skip
    if vocabulary.fingerprint != fingerprint:
        raise VocabularyError("the pickled vocabulary does not match its fingerprint")
    return restored_vocabularies().setdefault(key, vocabulary)
