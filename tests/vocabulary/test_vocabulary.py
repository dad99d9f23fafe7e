"""A Vocabulary is its bytes: tokens that are None, joined or refused, and what a fingerprint distinguishes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import VocabularyError
from constrain.frontends.regex import to_dfa
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from constrain.vocabulary.token_bytes import MOST_BYTES
from constrain.vocabulary.vocabulary import Vocabulary

TOKENS: list[bytes | None] = [b"a", b"b", b"ab", b"", b"ab", None, b"bc", b"c", b"\xc3", b"\xa9"]


def make_vocabulary(**changes: object) -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, (5,), **changes)  # type: ignore[arg-type]


def test_blob_and_offsets_are_the_tokens() -> None:
    vocabulary = make_vocabulary()
    assert vocabulary.size == len(vocabulary) == len(TOKENS)
    assert vocabulary.offsets.dtype == np.int32 and not vocabulary.offsets.flags.writeable
    for index, token in enumerate(vocabulary.tokens):
        start, end = vocabulary.offsets[index : index + 2]
        assert vocabulary.blob[start:end] == vocabulary.spelled(index) == (token or b"")


def test_end_tokens_and_special_tokens_never_match_text() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"</s>", b"[PAD]", b"b"], (1,), special={"[PAD]": 2})
    assert vocabulary.tokens == (b"a", None, None, b"b")
    assert vocabulary.text([0, 1, 2, 3]) == b"ab"
    assert vocabulary.eos_ids == (1,) and dict(vocabulary.special) == {"[PAD]": 2}


@pytest.mark.parametrize("size", [len(TOKENS), len(TOKENS) + 1, len(TOKENS) + 54])
def test_wider_logits_are_padded_with_tokens_that_never_match(size: int) -> None:
    vocabulary = make_vocabulary(size=size)
    assert vocabulary.size == size and len(vocabulary.offsets) == size + 1
    assert set(vocabulary.tokens[len(TOKENS) :]) <= {None}


def test_narrower_logits_leave_out_the_tokens_that_the_model_cannot_write() -> None:
    assert make_vocabulary(size=6).tokens == tuple(TOKENS[:6])
    with pytest.raises(VocabularyError, match="end token 5"):
        make_vocabulary(size=5)


@pytest.mark.parametrize(
    ("ends", "says"), [((), "eos_ids="), ((10,), "end token 10"), ((-1,), "end token -1"), ((5, 99), "end token 99")]
)
def test_missing_and_wrong_end_tokens_are_refused(ends: tuple[int, ...], says: str) -> None:
    with pytest.raises(VocabularyError, match=says):
        Vocabulary.from_tokens(TOKENS, ends)


def test_several_end_tokens_are_sorted_without_duplicates() -> None:
    assert Vocabulary.from_tokens(TOKENS, (7, 5, 7)).eos_ids == (5, 7)


def test_tokens_must_be_bytes() -> None:
    with pytest.raises(VocabularyError, match="token 1 is str"):
        Vocabulary.from_tokens([b"a", "b", None], (2,))  # type: ignore[list-item]
    with pytest.raises(VocabularyError, match="at least one"):
        Vocabulary.from_tokens([], ())


def test_the_fingerprint_distinguishes_vocabularies() -> None:
    same, other = make_vocabulary(), make_vocabulary()
    assert same == other and hash(same) == hash(other) and same != "vocabulary"
    assert same.fingerprint == make_vocabulary(name="another", leading_space="stripped").fingerprint
    differing = [
        Vocabulary.from_tokens(TOKENS, (6,)),
        Vocabulary.from_tokens(TOKENS, (5, 6)),
        make_vocabulary(size=11),
        make_vocabulary(special={"x": 0}),
        Vocabulary.from_tokens([b"ab", b"", *TOKENS[2:]], (5,)),  # the same blob, cut elsewhere
    ]
    assert len({same.fingerprint, *(v.fingerprint for v in differing)}) == len(differing) + 1


def test_missing_bytes_are_those_without_a_token_of_their_own() -> None:
    assert make_vocabulary().missing_bytes == frozenset(range(255)) - set(b"abc\xc3\xa9")
    assert Vocabulary.bytes().missing_bytes == frozenset()


def test_decode_joins_bytes_and_keeps_spaces() -> None:
    vocabulary = Vocabulary.from_tokens([b" the", b" ", b"\xc3", b"\xa9", None], (4,), leading_space="stripped")
    assert vocabulary.strips_leading_space
    assert vocabulary.decode([0, 1, 2, 3, 4]) == " the \u00e9"
    assert vocabulary.decode([2]) == "\ufffd"
    with pytest.raises(VocabularyError, match="no token 5"):
        vocabulary.decode([5])


def test_repr_says_what_it_is() -> None:
    text = repr(Vocabulary.bytes())
    assert "bytes" in text and "257 tokens" in text and "256 <end>" in text and "\n" not in text


@given(st.binary(max_size=20))
def test_the_byte_vocabulary_spells_everything(data: bytes) -> None:
    vocabulary = Vocabulary.bytes()
    assert vocabulary.text(vocabulary.tokenize(data)) == data


@given(
    st.lists(st.binary(min_size=1, max_size=3).map(lambda b: bytes(c % 3 + 97 for c in b)), min_size=1, max_size=6),
    st.text("abc", max_size=12).map(str.encode),
)
def test_tokenize_finds_the_fewest_tokens_or_says_there_are_none(tokens: list[bytes], data: bytes) -> None:
    vocabulary = Vocabulary.from_tokens([*tokens, None], (len(tokens),))
    least: list[float] = [0] + [float("inf")] * len(data)
    for end in range(1, len(data) + 1):
        for token in tokens:
            if data[:end].endswith(token):
                least[end] = min(least[end], least[end - len(token)] + 1)
    if least[-1] == float("inf"):
        with pytest.raises(VocabularyError, match="no tokens"):
            vocabulary.tokenize(data)
    else:
        ids = vocabulary.tokenize(data)
        assert vocabulary.text(ids) == data and len(ids) == least[-1]


def test_tokenize_prefers_the_spelling_of_the_tokenizer() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"ab", b"a", b"b", None], (3,), encode=lambda text: [1 if c == "a" else 2 for c in text if c in "ab"]
    )
    assert vocabulary.tokenize(b"ab") == [1, 2]
    assert vocabulary.fewest(b"ab") == [0]


@pytest.mark.parametrize("more", [0, 1])
def test_a_vocabulary_has_no_more_bytes_than_its_trie_may_have_nodes(more: int) -> None:
    """A node and a byte fit into 31 bits, and the same space is reserved for the merged trie."""
    assert (MOST_BYTES + 2 + mask_table.TRIE_WORDS) << 8 <= 2**31 and MOST_BYTES + 2 <= 4 * mask_table.TRIE_WORDS
    tokens = [b"%c" % letter * (1 << 20) for letter in b"ABCD"]
    tokens[0] = tokens[0][: MOST_BYTES - 3 * (1 << 20) - 2 + more]
    listed = [*tokens, b"A", b"x", None]
    if more:
        with pytest.raises(VocabularyError, match=f"{MOST_BYTES:,}"):
            Vocabulary.from_tokens(listed, (6,))
        return
    table = mask_table.MaskTable(Vocabulary.from_tokens(listed, (6,)))
    leaf = table.start(to_dfa("[A-Z]*"), at.UTF8)
    table.row(leaf)
    assert table.arrays[at.ROWS][: table.words].tolist() == [0b011111]
