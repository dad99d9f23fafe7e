"""Words that threads share: how they are compiled, and many threads that extend one table and one program at once."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from random import Random
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from constrain.base.options import Style
from constrain.compilation.constraint_compiler import compile
from constrain.engine.constraint import Constraint
from constrain.kernels import closure, leaf_masks, leaves, lexemes, masks, sets, shared_words, trie
from constrain.kernels.entry_points import publish_word
from constrain.kernels.jit.module_builder import compile_function
from constrain.kernels.jit.targets import TARGETS, make_machine
from constrain.vocabulary.vocabulary import Vocabulary

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "number", "multipleOf": 97, "minimum": 5},
        "b": {"type": "string", "pattern": "^[a-z]{2,5}-[0-9]+$"},
        "c": {"type": "array", "items": {"type": "integer", "minimum": -7, "maximum": 300}},
        "d": {"type": "string", "maxLength": 9},
    },
}
GRAMMAR = """
start: item ("," item)*
item: NAME "=" NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]+(\\.[0-9]+)?/
"""
SEEDS, ROUNDS, STEPS = 8, 3, 25
PIECES = [b"%d" % number for number in range(10, 200)]
PIECES += [
    b'":',
    b'{"',
    b'"a"',
    b"aa",
    b"b-",
    b", ",
    b"1,",
    b"=1",
    b"ab=",
]


@pytest.mark.parametrize(
    ("function", "instruction"),
    [
        (shared_words.publish_word, "stlr"), (leaves.expand_leaf, "stlr"), (trie.make_suffix_trie, "stlr"),
        (trie.order_by_length, "stlr"), (lexemes.find_root_reader, "stlr"), (lexemes.find_root_reader, "ldar"),
        (lexemes.find_next_reader, "stlr"), (lexemes.find_next_reader, "ldar"), (masks.fill_mask, "ldar"),
        (leaf_masks.add_row, "ldar"), (leaf_masks.add_leaf, "ldar"), (sets.step_leaf, "ldar"), (sets.start_set, "ldar"),
        (closure.compute_closure, "ldar"),
    ],
)  # fmt: skip
def test_aarch64_has_instructions_that_order_memory(function: Any, instruction: str) -> None:
    target = TARGETS["linux-aarch64"]
    machine = make_machine(target, target.levels[0])
    module = binding.parse_bitcode(compile_function(function).as_bitcode())
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    assert re.search(rf"\t{instruction}\t", machine.emit_assembly(module))


def test_a_word_is_published() -> None:
    words = np.zeros(5, np.int32)
    assert publish_word(words.ctypes.data, 3, -7) == 0
    assert words.tolist() == [0, 0, 0, -7, 0]


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def make_constraints() -> list[Constraint]:
    """Return constraints of a new vocabulary, whose table is empty."""
    size = 256 + len(PIECES)
    vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), *PIECES, None], (size,))
    schema = compile(vocabulary, schema=SCHEMA, style=Style.any())
    return [schema, compile(vocabulary, grammar=GRAMMAR)]


def walk(constraint: Constraint, seed: int) -> list[bytes]:
    """Return the masks of a random walk."""
    random, matcher, found = Random(seed), constraint.matcher(), list[bytes]()
    for _ in range(STEPS):
        mask = matcher.mask().copy()
        found.append(mask.tobytes())
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[:-1]
        if not len(allowed):
            break
        matcher.advance(int(random.choice(allowed.tolist())))
    return found


@pytest.mark.usefixtures("frequent_switches")
def test_threads_find_the_masks_of_one_thread() -> None:
    """All begin at once with an empty table, so that each reads what another has just written."""
    alone = [[walk(constraint, seed) for constraint in make_constraints()] for seed in range(SEEDS)]
    for _ in range(ROUNDS):
        constraints, barrier = make_constraints(), Barrier(SEEDS)
        found: dict[int, list[list[bytes]]] = {}

        def run(seed: int, constraints: list[Constraint] = constraints, barrier: Barrier = barrier) -> None:
            barrier.wait()
            found[seed] = [walk(constraint, seed) for constraint in constraints]  # noqa: B023

        threads = [Thread(target=run, args=(seed,)) for seed in range(SEEDS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[seed] for seed in range(SEEDS)] == alone
