"""infill_check against brute force: every string up to a length, split over random spans in every way."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

import constrain
from constrain.base.errors import LimitError
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.constraint import Constraint
from constrain.grammar.nodes import Grammar
from constrain.infilling import Gap, InfillAnswer, infill_check, position_lattice
from constrain.infilling.constraint_states import START, ConstraintStates
from constrain.vocabulary.vocabulary import Vocabulary
from tests import grammar_factory as make
from tests.grammar_oracle import Reference
from tests.token_mask_oracle import list_tokens

TOKENS: list[bytes | None] = [b"a", b"b", b"(", b")", b"ab", b"ba", b"b(", None]
SMALL = Vocabulary.from_tokens(TOKENS, (7,))
END = 7
MOST = 5
"""Most positions of tokens in a pattern."""
FORMS = {
    None: None,
    "[ab]*": constrain.regex("[ab]*"),
    "a?b?": constrain.regex("a?b?"),
    "(ab)+": constrain.regex("(ab)+"),
}


# ---- the oracle: token sequences, then texts


def fillings(spans: list[object]) -> list[list[tuple[object, ...]]]:
    """For each span all of its fillings, as tuples of pieces: bytes, tokens, None for absent positions."""
    out: list[list[tuple[object, ...]]] = []
    for span in spans:
        if isinstance(span, (bytes, int)):
            out.append([(span,)])
        elif span is None:
            out.append([(token,) for token in range(len(TOKENS))])
        else:
            assert isinstance(span, Gap) and span.high is not None
            if span.unit == "tokens":
                out.append(token_fillings(span))
            else:
                texts = ["".join(one) for n in range(span.low, span.high + 1) for one in product("ab()", repeat=n)]
                out.append([(text.encode(),) for text in texts if span.form is None or fits(span, text)])
    return out


@lru_cache(maxsize=64)
def cached_fillings(low: int, high: int, pattern: str | None, ends: str) -> list[tuple[object, ...]]:
    kinds = range(len(TOKENS)) if ends == "allowed" else range(len(TOKENS) - 1)
    out: list[tuple[object, ...]] = []
    for count in range(low, high + 1):
        for tokens in product(kinds, repeat=count):
            text = text_of(tokens)
            if text is not None and (pattern is None or re.fullmatch(pattern, text.decode())):
                out.append((*tokens, *[None] * (high - count)))
    return out


def token_fillings(gap: Gap) -> list[tuple[object, ...]]:
    pattern = next(name for name, form in FORMS.items() if form is gap.form)
    assert gap.high is not None
    return cached_fillings(gap.low, gap.high, pattern, gap.end_tokens)


def fits(gap: Gap, text: str) -> bool:
    pattern = next(name for name, form in FORMS.items() if form is gap.form)
    return pattern is None or re.fullmatch(pattern, text) is not None


def text_of(pieces: tuple[object, ...]) -> bytes | None:
    """The bytes of pieces; None if anything follows an end token."""
    data, ended = b"", False
    for piece in pieces:
        if piece == END and not isinstance(piece, bytes):
            ended = True
        elif piece is not None:
            added = piece if isinstance(piece, bytes) else TOKENS[piece]  # type: ignore[call-overload]
            if ended and added:
                return None
            data += added
    return data


class Oracle:
    """Says whether a grammar accepts a text; remembers."""

    def __init__(self, grammar: Grammar) -> None:
        self.reference, self.known = Reference(grammar), dict[bytes, bool]()

    def accepts(self, text: bytes) -> bool:
        if text not in self.known:
            self.known[text] = self.reference.accepts(text)
        return self.known[text]


def brute_force(spans: list[object], oracle: Oracle) -> tuple[set[bytes], list[set[int]]]:
    """The texts of all completions, and the tokens at each unknown position."""
    texts, unknown = set[bytes](), [span for span in spans if span is None or isinstance(span, Gap)]
    widths = [1 if one is None else one.high if one.unit == "tokens" else 0 for one in unknown]  # type: ignore[union-attr]
    masks: list[set[int]] = [set() for _ in range(sum(widths))]
    for parts in product(*fillings(spans)):
        text = text_of(tuple(piece for part in parts for piece in part))
        if text is not None and oracle.accepts(text):
            texts.add(text)
            holes = [
                piece
                for span, part in zip(spans, parts)
                if span is None or (isinstance(span, Gap) and span.unit == "tokens")
                for piece in part
            ]
            for mask, piece in zip(masks, holes):
                if piece is not None:
                    mask.add(piece)  # type: ignore[arg-type]
    return texts, masks


SEEDED = settings(
    phases=[Phase.generate], deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)

# ---- random patterns

token_gaps = st.builds(
    lambda low, more, form, ends: Gap(low, low + more, "tokens", form, ends),  # type: ignore[arg-type]
    st.integers(0, 2), st.integers(0, 2), st.sampled_from(list(FORMS.values())),
    st.sampled_from(["allowed", "refused"]),
)  # fmt: skip
text_gaps = st.builds(
    lambda low, more, form: Gap(low, low + more, form=form),
    st.integers(0, 2), st.integers(0, 2), st.sampled_from(list(FORMS.values())),
)  # fmt: skip
known = st.one_of(st.sampled_from([b"a", b"b", b"ab", b"(", b")"]), st.integers(0, len(TOKENS) - 1))


def is_small(spans: list[object]) -> bool:
    gaps = [one for one in spans if one is None or isinstance(one, Gap)]
    return sum(1 if one is None else one.high or 0 for one in gaps) <= MOST - 1


patterns = st.lists(st.one_of(known, known, st.none(), token_gaps, text_gaps), max_size=5).filter(is_small)


def check(oracle: Oracle, spans: list[object], answer: InfillAnswer) -> bool:
    texts, masks = brute_force(spans, oracle)
    assert answer.is_possible == bool(texts)
    assert answer.witness is None if not texts else answer.witness in texts
    assert answer.is_exact
    assert [list_tokens(mask) for mask in answer.masks] == masks
    return bool(texts)


@pytest.mark.parametrize("kind", ["rules", "mixed"])
def test_answers_are_those_of_brute_force(kind: str) -> None:
    grammars: st.SearchStrategy[Grammar] = getattr(make, kind).filter(make.sound)

    @seed(14)
    @settings(
        max_examples=60, phases=[Phase.generate], deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(grammar=grammars, several=st.lists(patterns, min_size=20, max_size=20))
    def run(grammar: Grammar, several: list[list[object]]) -> None:
        constraint, oracle = compile_grammar(grammar, SMALL), Oracle(grammar)
        verdicts.extend(check(oracle, spans, infill_check(spans, constraint)) for spans in several)  # type: ignore[arg-type]

    verdicts: list[bool] = []
    run()
    assert len(verdicts) >= 1_000 and 0.1 < np.mean(verdicts) < 0.9, (len(verdicts), np.mean(verdicts))


def test_narrowed_lattices_hold_true_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left out, witness and masks are right; and where nothing is left out, complete."""
    monkeypatch.setattr(position_lattice, "LEAST_WIDTH", 2)
    outcomes: list[str] = []

    @seed(16)
    @settings(SEEDED, max_examples=25)
    @given(grammar=make.rules.filter(make.sound), several=st.lists(patterns, min_size=20, max_size=20))
    def run(grammar: Grammar, several: list[list[object]]) -> None:
        constraint, oracle = compile_grammar(grammar, SMALL), Oracle(grammar)
        for spans in several:
            texts, masks = brute_force(spans, oracle)
            try:
                answer = infill_check(spans, constraint, beyond="narrow", most_states=1)  # type: ignore[arg-type]
            except LimitError:
                outcomes.append("undecided")
                continue
            assert answer.is_possible == bool(texts) and (not texts or answer.witness in texts)
            found = [list_tokens(mask) for mask in answer.masks]
            assert all(some <= every for some, every in zip(found, masks))
            assert found == masks or not answer.is_exact
            outcomes.append("exact" if answer.is_exact else "narrowed")

    run()
    assert min(outcomes.count(one) for one in ("exact", "narrowed")) > 10, outcomes


OBJECTS = Vocabulary.from_tokens(
    [b"{", b"}", b'"a":', b'"ab":', b'"x":', b'"xy":', b'"z":', b",", b"1", b"12", b'"a', b'"', b'":', None], (13,)
)


def walk_randomly(constraint: Constraint, rng: np.random.Generator, most: int = 9) -> list[int]:
    """Tokens of a prefix of a text, often of a whole one."""
    states, state, tokens = ConstraintStates.of(constraint), START, list[int]()
    while len(tokens) < most and not (states.is_accepting(state) and rng.random() < 0.7):
        arcs = states.list_token_arcs(state)
        allowed = arcs.labels[arcs.labels != OBJECTS.eos_ids[0]]
        if not len(allowed):
            break
        tokens.append(int(rng.choice(allowed)))
        state = arcs.target(tokens[-1])
    return tokens


def test_objects_agree_with_brute_force() -> None:
    """Keys that must differ, counts and required keys, with up to three unknown tokens in texts of the language."""
    grammars = make.objects.filter(make.sound)
    verdicts: list[bool] = []

    @seed(15)
    @settings(SEEDED, max_examples=40)
    @given(grammar=grammars, number=st.integers(0, 1000))
    def run(grammar: Grammar, number: int) -> None:
        constraint, oracle, rng = compile_grammar(grammar, OBJECTS), Oracle(grammar), np.random.default_rng(number)
        for _ in range(8):
            tokens: list[int | None] = [*walk_randomly(constraint, rng)]
            holes = sorted(rng.permutation(len(tokens))[: int(rng.integers(1, 4))].tolist())
            for hole in holes:
                tokens[hole] = None
            expected: list[set[int]] = [set() for _ in holes]
            for filling in product(range(len(OBJECTS.tokens) - 1), repeat=len(holes)):
                filled = dict(zip(holes, filling))
                text = OBJECTS.text([filled.get(index, token) for index, token in enumerate(tokens)])  # type: ignore[misc]
                if oracle.accepts(text):
                    for mask, token in zip(expected, filling):
                        mask.add(token)
            hole_gap = Gap(1, 1, "tokens", end_tokens="refused")
            answer = infill_check([hole_gap if token is None else token for token in tokens], constraint)
            assert [list_tokens(mask) for mask in answer.masks] == expected and answer.is_exact
            verdicts.append(answer.is_possible)

    run()
    assert len(verdicts) >= 300 and np.mean(verdicts) > 0.1, (len(verdicts), np.mean(verdicts))
