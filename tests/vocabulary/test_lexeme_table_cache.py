"""Lexeme tries on disk: another process has the masks of this one, from files, and none of them is trusted blindly."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import Vocabulary, compile, lark
from constrain.kernels import layout as at
from constrain.vocabulary import lexeme_table_cache
from constrain.vocabulary.lexeme_table_cache import SUFFIX, WRITING
from constrain.vocabulary.lexeme_trees import extract_tree, find_root, insert_tree, list_roots, list_tree
from constrain.vocabulary.mask_table import MaskTable
from constrain.vocabulary.mask_table_cache import find_mask_table
from tests.kernels.test_kernel_lexemes import CASES

PIECES = [b"if", b"let", b" ", b"\n", b"  ", b"a", b"b", b"cd", b"(", b")", b",", b"+", b"1", b"2.5", b"..", b'"', b":",
          b"=", b";", b"/*", b"*/", b"!", b"e"]  # fmt: skip


def make_vocabulary() -> Vocabulary:
    """Return a new vocabulary object of tokens that are many lexemes each, large enough for the cache."""
    rng = random.Random(5)
    tokens = {bytes([byte]): None for byte in range(256)}
    while len(tokens) < lexeme_table_cache.LEAST_TOKENS + 100:
        tokens[b"".join(rng.choices(PIECES, k=rng.randint(1, 5)))] = None
    return Vocabulary.from_tokens([*tokens, b""], eos_ids=[len(tokens)])


def list_masks(name: str) -> tuple[list[bytes], MaskTable]:
    """Return the masks along the texts of a grammar with a new vocabulary, and its table, written to disk."""
    grammar, texts = CASES[name]
    vocabulary = make_vocabulary()
    constraint = compile(vocabulary, grammar=lark(grammar, parser="lalr"))
    masks = []
    for text in texts:
        matcher = constraint.matcher()
        masks.append(matcher.mask().tobytes())
        for byte in text.encode():
            if not matcher.allows(byte):
                break
            matcher.advance(byte)
            masks.append(matcher.mask().tobytes())
    WRITING.flush()
    return masks, find_mask_table(vocabulary)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def expected(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The masks of a grammar without any cache."""
    with monkeypatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        return list_masks(getattr(request, "param", "sums"))[0]


def list_files(store: Path) -> list[Path]:
    return sorted(store.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("name", CASES)
def test_another_process_has_the_same_masks_from_the_files(
    name: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        expected, built = list_masks(name)
    assert not store.exists()
    assert list_masks(name)[0] == expected
    files = {path: path.read_bytes() for path in list_files(store)}
    roots = list_roots(built.arrays, 0)
    assert len(files) == len(roots) > 1
    masks, table = list_masks(name)
    assert masks == expected
    # Nothing was built, so nothing is written again, and every root is that of a file.
    assert {path: path.read_bytes() for path in list_files(store)} == files
    assert sorted(state for state, _ in list_roots(table.arrays, 0)) == sorted(state for state, _ in roots)
    assert int(table.arrays[at.TABLE][at.N_LEX_READERS]) == int(built.arrays[at.TABLE][at.N_LEX_READERS])


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "empty"])
def test_a_damaged_file_is_ignored_and_written_again(damage: str, store: Path, expected: list[bytes]) -> None:
    list_masks("sums")
    good = {path: path.read_bytes() for path in list_files(store)}
    for path, content in good.items():
        middle = len(content) // 2
        changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"cut": content[:-4], "changed": changed, "empty": b""}.get(damage, content))
        if damage == "foreign":
            path.chmod(0o622)
    assert list_masks("sums")[0] == expected
    assert list_masks("sums")[0] == expected
    assert {path: path.read_bytes() for path in list_files(store)} == good
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in good)


def test_without_a_writable_store_masks_are_the_same(store: Path, expected: list[bytes]) -> None:
    store.write_bytes(b"a file where the folder should be")
    assert list_masks("sums")[0] == expected


def test_files_that_were_used_last_are_retained(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_masks("sums")
    first = list_files(store)
    assert len(first) > 3
    monkeypatch.setattr(lexeme_table_cache, "MOST_FILES", 3)
    list_masks("braces")
    assert len(list_files(store)) == 3 and not set(list_files(store)) & set(first)
    monkeypatch.setattr(lexeme_table_cache, "MOST_BYTES", 1)
    list_masks("dots")
    assert list_files(store) == []


def test_a_tree_that_grows_is_written_again(store: Path) -> None:
    grammar = lark(CASES["sums"][0], parser="lalr")
    sizes = []
    for text in (b"1", b"f(1, 2.5) + (3 * g(4)) - h()"):
        matcher = compile(make_vocabulary(), grammar=grammar).matcher()
        for byte in text:
            matcher.mask()
            matcher.advance(byte)
        matcher.mask()
        WRITING.flush()
        sizes.append({path.name: path.stat().st_size for path in list_files(store)})
    assert any(sizes[1][name] > size for name, size in sizes[0].items())


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(CASES)), st.integers(0, 99), st.integers(0, 3))
def test_a_tree_inserted_elsewhere_is_the_same_tree(name: str, which: int, scanner: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        table = list_masks(name)[1]
        other = MaskTable(make_vocabulary())
    roots = list_roots(table.arrays, 0)
    for number in range(scanner + 1):  # so that the numbers in the other table differ
        state, root = roots[(which + number) % len(roots)]
        tree = extract_tree(table.arrays, list_tree(table.arrays, root))
        found = insert_tree(other.arrays, tree, number)
        assert find_root(other.arrays, number, state) == found
    again = extract_tree(other.arrays, list_tree(other.arrays, found))
    assert all(np.array_equal(one, two) for one, two in zip(tree, again))


def test_a_tree_is_not_inserted_where_it_does_not_fit() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        table = list_masks("sums")[1]
    state, root = list_roots(table.arrays, 0)[0]
    tree = extract_tree(table.arrays, list_tree(table.arrays, root))
    small = {slot: array.copy() for slot, array in table.arrays.items() if slot != at.LEX_WORDS}
    small[at.LEX_WORDS] = table.arrays[at.LEX_WORDS][
        : int(table.arrays[at.TABLE][at.N_LEX_WORDS]) + len(tree.words) - 1
    ]
    before = small[at.TABLE].copy()
    assert insert_tree(small, tree, 7) == -1
    assert np.array_equal(small[at.TABLE], before) and find_root(small, 7, state) == -1
