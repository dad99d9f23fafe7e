"""Small models under small constraints, whose exact distributions are computed by brute force, and tests of samplers.

CASES                    fixtures: a Markov model, a real Constraint, an oracle that does not know the engine
case.law()               every token sequence of at most max_tokens and its p(x) [x in L], end tokens summed up
g_test(counts, law)      p-value of the draws under the distribution
outcomes(run)            every outcome of `run(rng)` with its probability: random choices are enumerated, not drawn
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.automata.dfa import Dfa, Table
from constrain.compilation.constraint_compiler import compile as compile_constraint, compile_grammar
from constrain.engine.constraint import Constraint
from constrain.grammar.nodes import Chars, Choice, Grammar, Literal, Node, Rule, Sequence
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.results import Draw
from constrain.sampling.research.ngram import NGram
from constrain.vocabulary.vocabulary import Vocabulary

Tokens = tuple[int, ...]
CONTROL_BELOW = 1e-12
"""Upper bound of the p-value of masking, the negative control."""
PASS_ABOVE = 1e-6
"""Lower bound of the p-value of an exact sampler. Seeds are fixed, so the result is reproducible."""


class ChainModel:
    """A `LanguageModel` that sees the last `order` tokens. logs: float64 [(V + 1)**order, V]; V means no token."""

    def __init__(self, logs: NDArray[np.float64], order: int) -> None:
        self.logs, self.order, self.size = logs, order, logs.shape[1]
        self.row_counts: list[int] = []
        """Number of prefixes of each call."""

    @classmethod
    def random(
        cls, vocabulary: Vocabulary, order: int, seed: int, peaked: float = 0.4, end: float = 0.25
    ) -> ChainModel:
        """Rows are Dirichlet, of concentration `peaked` for each token and `end` for each end token."""
        size = vocabulary.size
        shape = np.full(size, peaked)
        shape[list(vocabulary.eos_ids)] = end
        rows = np.random.default_rng(seed).dirichlet(shape, (size + 1) ** order)
        rows = np.maximum(rows, 1e-4)
        return cls(np.log(rows / rows.sum(axis=1, keepdims=True)), order)

    def context(self, prefix: Iterable[int]) -> int:
        last = [self.size] * self.order + list(prefix)
        return sum(token * (self.size + 1) ** i for i, token in enumerate(last[len(last) - self.order :]))

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        self.row_counts.append(len(prefixes))
        return self.logs[[self.context(prefix) for prefix in prefixes]]

    def as_ngram(self) -> NGram:
        """The same model as an NGram."""
        possible = [token for token in range(self.size) if (self.logs[:, token] > -np.inf).any()]
        contexts = [c for length in range(self.order + 1) for c in product(possible, repeat=length)]
        return NGram(contexts, self.logs[[self.context(context) for context in contexts]])


@dataclass(frozen=True)
class Case:
    """One fixture. accepts: the oracle, which says whether bytes are in the language."""

    name: str
    lm: ChainModel = field(repr=False)
    constraint: Constraint = field(repr=False)
    accepts: Callable[[bytes], bool] = field(repr=False)
    max_tokens: int

    def law(self) -> dict[Tokens, float]:
        """Return p(x) [x in L] of every token sequence x, without its end, of at most max_tokens tokens
        with its end.
        """
        return dict(self._law)

    @cached_property
    def _law(self) -> dict[Tokens, float]:
        vocabulary, found = self.constraint.vocabulary, dict[Tokens, float]()
        rows = np.exp(self.lm.logs)
        texts = [i for i, token in enumerate(vocabulary.tokens) if token and rows[:, i].any()]
        spelled = [vocabulary.tokens[token] or b"" for token in texts]
        for length in range(self.max_tokens):
            for tokens, pieces in zip(product(texts, repeat=length), product(spelled, repeat=length)):
                if self.accepts(b"".join(pieces)):
                    p = float(rows[self.lm.context(tokens), list(vocabulary.eos_ids)].sum())
                    for i, token in enumerate(tokens):
                        p *= float(rows[self.lm.context(tokens[:i]), token])
                    found[tokens] = p
        return found

    @cached_property
    def z(self) -> float:
        """p(L), of texts that end in time."""
        return math.fsum(self._law.values())

    def exact(self) -> dict[Tokens, float]:
        """Return p given L, from which an exact sampler draws."""
        return {tokens: p / self.z for tokens, p in self._law.items()}


# ---- the fixtures -------------------------------------------------------------------------------------------------

LETTERS = Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
TWO = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
PIECES = Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", b"abb", b"b", None, None], eos_ids=[6, 7])
BYTES = Vocabulary.from_tokens([b"a", b"\xc3", b"\xa9", b"\xc3\xa9", b"\xa9a", None, None], eos_ids=[6])
NESTED = [b"(", b")", b"()", b"1", b"+", b"a", b"b", b"ab"]
ALL_BYTES = Vocabulary.from_tokens(
    [*NESTED, *(bytes([i]) for i in range(256) if bytes([i]) not in NESTED), None], [255 + 3]
)
"""A vocabulary with all bytes, so that no search is needed to know that tokens spell a completion."""


def regular(name: str, vocabulary: Vocabulary, pattern: str, max_tokens: int, *, order: int = 1, seed: int = 0) -> Case:
    """Return a case of a pattern; the oracle is `re`."""
    oracle = re.compile(pattern.encode())  # é becomes two bytes, in a group: no class of characters may hold it
    constraint = compile_constraint(vocabulary=vocabulary, regex=pattern)
    lm = ChainModel.random(vocabulary, order, seed)
    return Case(name, lm, constraint, lambda text: oracle.fullmatch(text) is not None, max_tokens)


def trapped(name: str, seed: int, *, states: int = 6, order: int = 1, max_tokens: int = 8) -> Case:
    """Return a case of a random Dfa over a, b, c without 45 % of its transitions."""
    rng = np.random.default_rng(seed)
    while True:
        rows = np.where(rng.random((states, 3)) < 0.45, -1, rng.integers(0, states, (states, 3))).tolist()
        accepting = (rng.random(states) < 0.35).tolist()
        table = Table([0, 97, 98, 99, 100], [0, 1, 2, 3, 0], [[-1, *row] for row in rows], accepting)
        dfa = Dfa.from_table(table)
        if len(dfa.delta) >= 4 and not dfa.accepting[0]:
            break

    def accepts(text: bytes) -> bool:
        state = 0
        for byte in text:
            state = rows[state][byte - 97]
            if state < 0:
                return False
        return bool(accepting[state])

    constraint = compile_grammar(Grammar(Chars(dfa), {}), LETTERS)
    return Case(name, ChainModel.random(LETTERS, order, seed), constraint, accepts, max_tokens)


def context_free(
    name: str,
    tokens: list[bytes],
    rules: Mapping[str, Node],
    accepts: Callable[[bytes], bool],
    max_tokens: int,
    seed: int,
) -> Case:
    """Return a case of rules, the first of which is the start. The model puts mass on `tokens` only."""
    constraint = compile_grammar(Grammar(Rule(next(iter(rules))), dict(rules)), ALL_BYTES)
    rows = np.exp(ChainModel.random(ALL_BYTES, 1, seed, peaked=0.6).logs)
    known = [ALL_BYTES.tokens.index(token) for token in tokens] + list(ALL_BYTES.eos_ids)
    rows[:, [token for token in range(ALL_BYTES.size) if token not in known]] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(rows / rows.sum(axis=1, keepdims=True))
    return Case(name, ChainModel(logs, 1), constraint, accepts, max_tokens)


def balanced(text: bytes) -> bool:
    depth = 0
    for byte in text:
        depth += 1 if byte == 40 else -1
        if depth < 0:
            return False
    return depth == 0


def is_sum(text: bytes) -> bool:
    """Return whether a text is a sum of ones and brackets, by removing brackets from the inside out."""
    while True:
        shorter = re.sub(rb"\(1(\+1)*\)", b"1", text)
        if shorter == text:
            return re.fullmatch(rb"1(\+1)*", text) is not None
        text = shorter


@lru_cache(maxsize=1)
def cases() -> dict[str, Case]:
    """Return all cases with a text, by name."""
    dyck = {"s": Choice((Literal(b""), Sequence((Literal(b"("), Rule("s"), Literal(b")"), Rule("s")))))}
    nested = {"s": Choice((Literal(b"ab"), Sequence((Literal(b"a"), Rule("s"), Literal(b"b")))))}
    halves = {b"a" * n + b"b" * n for n in range(1, 10)}
    inside = Choice((Literal(b""), Rule("s")))
    mirror = {"s": Choice(tuple(Sequence((Literal(x), inside, Literal(x))) for x in (b"a", b"b")))}
    term = Choice((Literal(b"1"), Sequence((Literal(b"("), Rule("sum"), Literal(b")")))))
    sums = {"sum": Choice((term, Sequence((Rule("sum"), Literal(b"+"), term))))}
    made = [
        regular("counting", TWO, "(b*a){3}b+", 10, seed=4),
        trapped("traps", 38),
        trapped("traps, trigram", 21, order=2, max_tokens=7),
        regular("pieces", PIECES, "(ab|abba|b|bab|aabb)(ab)*", 6, seed=5),
        regular("bytes", BYTES, "(a(é)|(é))*a?", 6, seed=1),
        context_free("brackets", [b"(", b")", b"()"], dyck, balanced, 9, 5),
        context_free("a^n b^n", [b"a", b"b", b"ab"], nested, lambda t: t in halves, 8, 5),
        context_free("palindromes", [b"a", b"b"], mirror, lambda t: t == t[::-1] and len(t) in (2, 4, 6, 8), 9, 5),
        context_free("sums", [b"1", b"+", b"(", b")"], sums, is_sum, 8, 5),
        tiny(),
        regular("single", LETTERS, "abcab", 8, seed=6),
        regular("only the end", LETTERS, "", 4, seed=7),
    ]  # fmt: skip
    return {case.name: case for case in made}


def tiny() -> Case:
    """Return a case whose texts all need a c, which has a probability below a millionth at every position."""
    case = regular("tiny mass", LETTERS, "[ab]*c[ab]*", 7, seed=8)
    rows = np.exp(case.lm.logs)
    rows[:, 2] = np.linspace(2e-7, 9e-7, len(rows))
    return Case(
        case.name, ChainModel(np.log(rows / rows.sum(axis=1, keepdims=True)), 1), case.constraint, case.accepts, 7
    )


def empty() -> Case:
    """Return a case of which no text fits into max_tokens: p(L) is 0."""
    return regular("nothing in time", LETTERS, "abcabc", 5, seed=9)


# ---- how far draws are from a law ------------------------------------------------------------------------------------


def masked_fails(case: Case, n: int, rng: np.random.Generator) -> bool:
    """Return whether a G-test rejects masked draws, the negative control."""
    draws = masked_sampling.draw_masked(case.lm, case.constraint, n=n, rng=rng, max_tokens=case.max_tokens)
    return g_test(Counter(draw.tokens for draw in draws if draw.log_weight > -np.inf), case.exact()) < CONTROL_BELOW


def resampled(draws: Iterable[Draw], rng: np.random.Generator) -> Tokens:
    """Return the tokens of one draw, chosen by weight."""
    listed = list(draws)
    logs = np.array([draw.log_weight for draw in listed])
    weights = np.exp(logs - logs.max())
    return listed[int(rng.choice(len(listed), p=weights / weights.sum()))].tokens


def g_test(counts: Mapping[Tokens, int], law: Mapping[Tokens, float], least: float = 5.0) -> float:
    """Return the p-value of the G-test that counts were drawn from a distribution, which sums to 1.

    Cells with an expectation below `least` are pooled; an outcome with probability 0 gives 0. If the expectation of the
    pool is below `least`, too, its count is tested by the tail of a Poisson distribution, and the p-value is twice the
    smaller one (Bonferroni).
    """
    n = sum(counts.values())
    if any(count and law.get(tokens, 0.0) <= 0 for tokens, count in counts.items()):
        return 0.0
    common = [tokens for tokens, p in law.items() if n * p >= least]
    cells = [(counts.get(tokens, 0), n * law[tokens]) for tokens in common]
    seen = n - sum(s for s, _ in cells)
    expected = n * math.fsum(p for p in law.values() if n * p < least)
    rest = 1.0
    if expected >= least:
        cells.append((seen, expected))
    elif seen:
        rest = poisson_tail(seen, expected)
    drawn, total = sum(s for s, _ in cells), math.fsum(e for _, e in cells)
    g = 2 * math.fsum(s * math.log(s * total / (e * drawn)) for s, e in cells if s)
    return min(1.0, 2 * min(chi_square_tail(max(g, 0.0), len(cells) - 1), rest))


def poisson_tail(seen: int, mean: float) -> float:
    """P(at least `seen`), for a mean below or near `seen`: its terms fall fast."""
    terms = (math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(seen, seen + 300))
    return min(1.0, math.fsum(terms)) if mean > 0 else 0.0


def chi_square_tail(x: float, freedom: int) -> float:
    """P(chi-square of `freedom` degrees > x), by the finite series for integer degrees (Abramowitz & Stegun
    26.4.4-5).
    """
    if freedom < 1:
        return 1.0
    if x <= 0:
        return 1.0
    half, odd = x / 2, freedom % 2
    tail = math.erfc(math.sqrt(half)) if odd else 0.0
    powers = [i + odd / 2 for i in range((freedom - odd) // 2)]
    return min(1.0, tail + math.fsum(math.exp(k * math.log(half) - half - math.lgamma(k + 1)) for k in powers))


def total_variation(counts: Mapping[Tokens, float], law: Mapping[Tokens, float]) -> float:
    """Half the sum of |frequency - p|."""
    n = sum(counts.values())
    return 0.5 * math.fsum(abs(counts.get(k, 0) / n - law.get(k, 0.0)) for k in {*counts, *law})


def frequencies(draws: Iterable[Tokens]) -> Counter[Tokens]:
    return Counter(draws)


# ---- randomness played through -------------------------------------------------------------------------------------


class Script:
    """A replacement of `numpy.random.Generator` whose numbers are intervals, which are split by comparisons.

    `random()` and `random(n)` return Uniforms, `integers(n)` one of n values. Every comparison splits the possibilities
    into branches. `choices` determines which branch is taken, and `outcomes` enumerates all of them.
    """

    def __init__(self, choices: list[int]) -> None:
        self.choices, self.taken, self.probability = choices, list[tuple[int, int]](), 1.0

    def branch(self, probabilities: list[float]) -> int:
        """Return the number of the branch that is taken. probabilities: all above 0, they sum to 1."""
        if len(probabilities) == 1:
            return 0
        depth = len(self.taken)
        index = self.choices[depth] if depth < len(self.choices) else 0
        self.taken.append((index, len(probabilities)))
        self.probability *= probabilities[index]
        return index

    def random(self, size: int | None = None) -> Uniform:
        bases = np.empty(() if size is None else size, dtype=object)
        for i in np.ndindex(bases.shape):
            bases[i] = [0.0, 1.0]
        return Uniform(self, bases, np.ones(bases.shape), np.zeros(bases.shape))

    def integers(self, high: int) -> int:
        return self.branch([1 / high] * high)


class Uniform:
    """scale * u + offset for uniform u, each known to lie in an interval; arrays of them, of one shape."""

    def __init__(self, script: Script, bases: Any, scale: Any, offset: Any) -> None:
        self.script, self.bases, self.scale, self.offset = script, bases, scale, offset

    def affine(self, factor: Any, shift: Any) -> Uniform:
        scale, offset = np.broadcast_arrays(self.scale * factor, self.offset * factor + shift)
        return Uniform(self.script, np.broadcast_to(self.bases, scale.shape), scale, offset)

    def ask(self, index: Any, points: NDArray[np.float64]) -> float:
        """Split the interval of one element at `points`, take a branch, and return a value of its interval."""
        base, scale, offset = self.bases[index], float(self.scale[index]), float(self.offset[index])
        low, high = base
        inner = sorted({u for u in ((points - offset) / scale).tolist() if low < u < high})
        edges = [low, *inner, high]
        pieces = [(a, b) for a, b in zip(edges, edges[1:]) if b - a > 1e-13]
        total = math.fsum(b - a for a, b in pieces)
        base[:] = pieces[self.script.branch([(b - a) / total for a, b in pieces])]
        return scale * (base[0] + base[1]) / 2 + offset

    def each(self, points: Any, answer: Callable[[float], Any]) -> Any:
        out = np.empty(self.scale.shape, dtype=object)
        for index in np.ndindex(out.shape):
            out[index] = answer(self.ask(index, np.atleast_1d(np.asarray(points, dtype=np.float64))))
        return out[()] if out.shape == () else out

    def compare(self, other: Any, relation: Callable[[float, float], bool]) -> Any:
        bounds = np.broadcast_to(np.asarray(other, dtype=np.float64), self.scale.shape)
        out = np.empty(self.scale.shape, dtype=bool)
        for index in np.ndindex(out.shape):
            bound = float(bounds[index])
            out[index] = relation(self.ask(index, np.array([bound])), bound)
        return bool(out) if out.shape == () else out

    def __lt__(self, other: Any) -> Any:
        return self.compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self.compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self.compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self.compare(other, lambda a, b: a >= b)

    def __add__(self, other: Any) -> Uniform:
        return self.affine(1.0, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Uniform:
        return self.affine(1.0, -other)

    def __mul__(self, other: Any) -> Uniform:
        return self.affine(other, 0.0)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Uniform:
        return self.affine(1 / np.asarray(other, dtype=np.float64), 0.0)

    def __getitem__(self, index: Any) -> Uniform:
        return Uniform(
            self.script, _array(self.bases[index]), np.asarray(self.scale[index]), np.asarray(self.offset[index])
        )

    def __len__(self) -> int:
        return len(self.scale)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        left, right = inputs
        mirrored = isinstance(right, Uniform)
        one, other = (right, left) if mirrored else (left, right)
        if ufunc in (np.add, np.multiply):
            return one + other if ufunc is np.add else one * other
        less = {np.less: "__lt__", np.less_equal: "__le__", np.greater: "__gt__", np.greater_equal: "__ge__"}
        turned = {np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__"}
        if ufunc in less:
            return getattr(one, (turned if mirrored else less)[ufunc])(other)
        if ufunc is np.true_divide and not mirrored:
            return one / other
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is not np.searchsorted:
            return NotImplemented
        edges, side = np.asarray(args[0]), kwargs.get("side", args[2] if len(args) > 2 else "left")
        found = self.each(edges, lambda value: int(np.searchsorted(edges, value, side=side)))
        return found if isinstance(found, int) else found.astype(np.int64)


def _array(base: Any) -> Any:
    """Return one base as an array of no dimensions, several unchanged."""
    if isinstance(base, np.ndarray):
        return base
    out = np.empty((), dtype=object)
    out[()] = base
    return out


def outcomes(run: Callable[[Any], Any]) -> Iterator[tuple[float, Any]]:
    """Yield (probability, result) for every outcome of `run(rng)`, with `rng` a Script."""
    choices: list[int] = []
    while True:
        script = Script(choices)
        result = run(script)
        yield script.probability, result
        taken = script.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        choices = [index for index, _ in taken[:-1]] + [taken[-1][0] + 1]
