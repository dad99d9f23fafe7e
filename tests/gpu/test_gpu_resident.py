"""Constraints on the card: the table is the Matcher's, in every state and for every token; steps by the kernel too."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import constrain
from constrain import LimitError, Vocabulary, VocabularyError
from constrain.integrations.cuda import ResidentConstraints, TokenTable, mask_softmax_sample, pool_tables, token_table
from constrain.integrations.cuda.token_tables import ENDED
from constrain.kernels.cuda.cuda_automaton import REFUSED

WORDS = [b"ab", b"abc", b"bc", b"c1", b"12", b"1", b"a", b"b", b"c", b"-", b"b-", b'"', b'":', b"", None]
VOCABULARY = Vocabulary.from_tokens([*WORDS, None, None], (15, 16), special={"<e>": 15, "<f>": 16})
FORMS = {
    "words": {"regex": "(abc|ab-1|c12){1,3}"},
    "free": {"regex": "[a-c]*(-[12]{2,4})?"},
    "few": {"regex": "abc|abc1|b"},
}


def compiled(name: str) -> constrain.Constraint:
    return constrain.compile(VOCABULARY, **FORMS[name])


@pytest.mark.parametrize("name", FORMS)
def test_the_table_is_the_constraint(name: str) -> None:
    """Every state that tokens reach: its mask, and where each token of the vocabulary leads, end tokens included."""
    constraint, table = compiled(name), token_table(compiled(name))
    todo = [(constraint.matcher(), table.starts[0])]
    known: dict[int, np.ndarray] = {}
    while todo:
        matcher, state = todo.pop()
        mask = matcher.mask()
        assert (table.mask(state) == mask).all()
        if state in known:
            continue
        known[state] = mask
        for token in range(-1, VOCABULARY.size + 1):
            after = table.next(state, token)
            if not matcher.allows(token):
                assert after == REFUSED
            elif token in VOCABULARY.eos_ids:
                assert after == ENDED
            else:
                other = matcher.fork()
                other.advance(token)
                todo.append((other, after))
    assert len(known) == len(table.states) - 2, "no state is in vain"
    assert not table.mask(REFUSED).any() and all(table.next(REFUSED, token) == REFUSED for token in range(17))
    assert table.mask(ENDED).tolist() == [0b11 << 15]
    assert [table.next(ENDED, token) for token in (0, 15, 16)] == [REFUSED, ENDED, ENDED]


def test_token_tables_raise_for_exceeded_limits_and_mixed_vocabularies() -> None:
    nested = constrain.compile(Vocabulary.bytes(), schema={"type": "array", "items": {"$ref": "#"}})
    with pytest.raises(LimitError, match="states"):
        token_table(nested, most_states=60)
    with pytest.raises(LimitError, match="bytes on the card"):
        token_table(compiled("words"), most_bytes=100)
    with pytest.raises(VocabularyError, match="one vocabulary"):
        pool_tables([token_table(compiled("few")), token_table(constrain.compile(Vocabulary.bytes(), regex="a"))])


@pytest.mark.parametrize("seed", range(3))
def test_packed_rows_are_the_rows(seed: int) -> None:
    """Random tables: each row comes out of base, otherwise and slots as it went in."""
    from constrain.integrations.cuda.token_tables import pack_rows
    from constrain.kernels.cuda.cuda_automaton import BASE, OTHERWISE

    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, rng.integers(1, 40), 60).astype(np.int32) for _ in range(80)]
    rows += [np.where(rng.random(60) < 0.9, 3, row).astype(np.int32) for row in rows]
    states, slots = pack_rows(rows)
    assert len({states[i, BASE] for i in range(160)}) == len({row.tobytes() for row in rows})
    for state, row in zip(states, rows):
        found = slots[state[BASE] : state[BASE] + 60]
        assert (np.where(found[:, 0] == state[BASE], found[:, 1], state[OTHERWISE]) == row).all()


def pooled(device: str) -> tuple[TokenTable, ResidentConstraints]:
    tables = [token_table(compiled(name)) for name in FORMS]
    return pool_tables(tables), ResidentConstraints(tables, device)


def test_rows_walk_on_the_card_as_their_matchers_do(device: str) -> None:
    """Three constraints in one pool, allowed tokens and refused ones, ends and what follows them."""
    rng = random.Random(1)
    _, here = pooled(device)
    which = [0, 1, 2, 1, 0]
    places = here.start(which)
    matchers = [compiled(list(FORMS)[one]).matcher() for one in which]
    dead = [False] * 5
    for step in range(12):
        masks = here.masks[places.rows.long()].cpu().numpy()
        tokens = []
        for row, matcher in enumerate(matchers):
            ended = any(token in VOCABULARY.eos_ids for token in matcher.tokens)
            want = np.zeros(1, np.int32) if dead[row] else np.array([0b11 << 15]) if ended else matcher.mask()
            assert masks[row].tolist() == want.tolist()
            allowed = [token for token in range(17) if int(want[0]) >> token & 1]
            token = rng.randrange(-1, 18) if step == 5 or not allowed else rng.choice(allowed)
            dead[row] |= token not in allowed
            if not dead[row] and not ended:
                matcher.advance(token)
            tokens.append(token)
        here.step(places, torch.tensor(tokens, dtype=torch.int32, device=device))
        assert here.refused(places).tolist() == dead
        assert here.ended(places).tolist() == [
            not gone and any(token in VOCABULARY.eos_ids for token in matcher.tokens)
            for gone, matcher in zip(dead, matchers)
        ]
    assert any(dead) and here.nbytes > 0


def test_a_text_is_drawn_without_the_host(device: str) -> None:
    """Sampling and stepping by turns: what comes out is in the language."""
    _, here = pooled(device)
    places, drawn = here.start([0, 2]), []
    logits = torch.zeros((2, 17), device=device)
    seeds = torch.tensor([1, 2], device=device)
    for step in range(4):
        found = mask_softmax_sample(logits, here.masks, sources=places.rows, seeds=seeds, steps=step)
        here.step(places, found.tokens)
        drawn.append(found.tokens.tolist())
    assert not here.refused(places).any()
    for row, name in enumerate(("words", "few")):
        matcher = compiled(name).matcher()
        for tokens in drawn:
            if tokens[row] in VOCABULARY.eos_ids:
                assert matcher.is_complete
                break
            matcher.advance(tokens[row])
    with pytest.raises(ValueError, match="int32"):
        here.step(places, torch.zeros(2, dtype=torch.int64, device=device))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card here")
def test_a_step_runs_in_a_cuda_graph() -> None:
    """Captured once, replayed: the same texts as without a graph."""
    _, here = pooled("cuda")
    logits, seeds = torch.zeros((2, 17), device="cuda"), torch.tensor([1, 2], device="cuda")

    def step(places: object, steps: torch.Tensor) -> torch.Tensor:
        found = mask_softmax_sample(logits, here.masks, sources=places.rows, seeds=seeds, steps=steps)  # type: ignore[attr-defined]
        here.step(places, found.tokens)  # type: ignore[arg-type]
        steps += 1
        return found.tokens

    plain, steps = here.start([0, 2]), torch.zeros(2, dtype=torch.int64, device="cuda")
    want = [step(plain, steps).tolist() for _ in range(8)]
    places, steps = here.start([0, 2]), torch.zeros(2, dtype=torch.int64, device="cuda")
    begin = (places.states.clone(), places.rows.clone())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(places, steps)
    places.states.copy_(begin[0]), places.rows.copy_(begin[1]), steps.zero_()
    got = []
    for _ in range(8):
        graph.replay()
        got.append(out.tolist())
    assert got == want
