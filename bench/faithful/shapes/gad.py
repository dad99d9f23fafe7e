"""GAD's protocol (Park et al. 2024): 2,000 draws, divergence of a running window of 500, on grammars of its two kinds.

The paper's estimate renormalises the model's likelihoods over the texts that were drawn. The true divergence is
computed as well: nesting is bounded, so all token sequences can be enumerated. For ASAp, so is the divergence of the
distribution that it has learnt after a number of draws.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

import constrain
from constrain import demo
from constrain.engine.matcher import Matcher
from constrain.sampling import asap, smc, trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.particles import Awrs
from constrain.sampling.success_trie import END, PrefixDistribution, SuccessTrie, TrieNode
from constrain.sampling.success_walks import build_prefix_distribution
from tests.markov_factory import Tokens

from ...checkpoints import BASELINE, load_checkpoint
from ...counted_models import CachedModel
from ..fixtures import Fixture, build_fixture
from ..measure import compute_divergence, redraw_exactly
from ..samplers import list_ended_texts

__all__ = [
    "GRAMMARS",
    "Windows",
    "list_gad_fixtures",
    "compute_walk_probabilities",
    "tabulate_distributions",
    "measure_learnt_divergence",
    "measure_windows",
]

WINDOW = 500
"""Draws of a window."""

GRAMMARS: list[tuple[str, str, str, int]] = [
    ("SLIA name-combine", "Combine the first and the last name.",
     r"\(cat (f|l) (\(cat (' '|',') (f|l)\)|f|l)\)", 18),
    ("SLIA initials", "Give the initials of a name.",
     r"\(cat (\(at n [01]\)|n) (\(at n [01]\)|'\.')\)", 20),
    ("SLIA phone", "Give the area code of a phone number.", r"\(sub (n|p) [0-4] ([1-4]|\(len n\))\)", 14),
    ("BV4 or", "Set the lowest bit of x.", r"(\((bvor|bvand|bvxor) (x|y|#b[01]{2}) (x|y|#b[01]{2})\)|x|y)", 14),
    ("BV4 shift", "Shift x by one.", r"\((bvshl|bvlshr) (x|\(bvnot x\)) (#b0[01]|x)\)", 18),
    ("BV4 negate", "Negate x.", r"(x|\((bvnot|bvneg) (x|\((bvnot|bvneg) x\)|\(bvadd x #b(00|01|10)\))\))", 22),
]  # fmt: skip
"""(name, instruction, the grammar as a pattern with bounded nesting, max_tokens)."""


def list_gad_fixtures(names: list[str] | None = None, checkpoint: str = BASELINE) -> list[Fixture]:
    """Build a fixture of each grammar, with the embedded model."""
    model, out = load_checkpoint(checkpoint), []
    for name, instruction, pattern, most in GRAMMARS:
        if names is None or name in names:
            constraint = constrain.compile(vocabulary=model.vocabulary, regex=pattern)
            lm = CachedModel(model.on(demo.compose_prompt(instruction, regex=pattern.replace("\\", ""))))
            out.append(build_fixture(name, lm, constraint, most, real=True))
    return out


@dataclass(frozen=True)
class Windows:
    """Divergences in nats along the draws.

    at: numbers of draws. true, estimated: by method, KL(window || p given L) at each of them, and as GAD estimates it.
    floor: the mean of it for exact draws. learnt: (number of draws, KL(p given L || what ASAp draws from then)).
    """

    at: list[int]
    true: dict[str, list[float]]
    estimated: dict[str, list[float]]
    floor: float
    learnt: list[tuple[int, float]]


def measure_windows(f: Fixture, draws: int, seed: int, window: int = WINDOW) -> Windows:
    """Measure all methods on one grammar."""
    rng = np.random.default_rng([seed, 31])
    at = list(range(window, draws + 1, max((draws - window) // 10, 1)))
    learnt, drawn = list[tuple[int, float]](), dict[str, list[Tokens]]()
    drawn["masked"] = list_ended_texts(
        masked_sampling.draw_masked(f.lm, f.constraint, n=draws, rng=rng, max_tokens=f.max_tokens)
    )
    drawn["ASAp"] = draw_by_asap(f, draws, rng, learnt)
    drawn["exact"] = list_ended_texts(
        trie_rejection.draw_exact(f.lm, f.constraint, n=draws, rng=rng, max_tokens=f.max_tokens)
    )
    particles = smc.draw_smc(
        f.lm, f.constraint, n=window, rng=rng, max_tokens=f.max_tokens, particles=5, move=Awrs()
    )  # fmt: skip
    drawn["AWRS-SMC 5"] = list_ended_texts(particles)  # it learns nothing, so one window represents all
    seen = {x for texts in drawn.values() for x in texts}
    total = math.fsum(f.exact[x] for x in seen)
    proxy = {x: f.exact[x] / total for x in seen}
    true, estimated = dict[str, list[float]](), dict[str, list[float]]()
    for name, texts in drawn.items():
        parts = [Counter(texts[-window:] if end > len(texts) else texts[max(end - window, 0) : end]) for end in at]
        true[name] = [compute_divergence(part, f.exact) for part in parts]
        estimated[name] = [compute_divergence(part, proxy) for part in parts]
    floor = float(np.mean([compute_divergence(Counter(redraw_exactly(f, window, rng)), f.exact) for _ in range(20)]))
    return Windows(at, true, estimated, floor, learnt)


def draw_by_asap(f: Fixture, n: int, rng: np.random.Generator, learnt: list[tuple[int, float]]) -> list[Tokens]:
    """Draw with ASAp, and append (number of draws, divergence of the learnt distribution) to `learnt`."""
    trie, tree, out, done = SuccessTrie(f.max_tokens), tabulate_distributions(f), list[Tokens](), 0
    learnt.append((0, measure_learnt_divergence(f, tree, trie)))
    for upto in sorted({1, 3, 10, 30, 100, 300, 1000, n}):
        if upto <= n:
            draws = asap.draw_asap(f.lm, f.constraint, n=upto - done, rng=rng, max_tokens=f.max_tokens, trie=trie)
            out, done = out + list_ended_texts(draws), upto
            learnt.append((done, measure_learnt_divergence(f, tree, trie)))
    return out


def measure_learnt_divergence(f: Fixture, tree: dict[Tokens, PrefixDistribution], trie: SuccessTrie) -> float:
    """Return KL(p given L || ASAp) in nats, for ASAp with this trie and no further learning, given that a walk ends."""
    law = compute_walk_probabilities(tree, trie)
    total = math.fsum(law.values())
    return math.fsum(p * math.log(p / (law[x] / total)) for x, p in f.exact.items() if p > 0)


def tabulate_distributions(f: Fixture) -> dict[Tokens, PrefixDistribution]:
    """Return the next-token distribution after every prefix that the mask allows."""
    ends, out = f.constraint.vocabulary.eos_ids, dict[Tokens, PrefixDistribution]()
    stack: list[tuple[Tokens, Matcher]] = [((), f.constraint.matcher())]
    while stack:
        tokens, matcher = stack.pop()
        allowed = masked_sampling.allowed_tokens(matcher.mask())
        if len(tokens) + 1 >= f.max_tokens:
            allowed = allowed[np.isin(allowed, ends)]
        law = out[tokens] = build_prefix_distribution(f.lm.next_logprobs([list(tokens)])[0], allowed, ends)
        for token, part in zip(law.tokens.tolist(), law.probs.tolist()):
            if token != END and part > 0:
                child = matcher.fork()
                child.advance(token)
                stack.append(((*tokens, token), child))
    return out


def compute_walk_probabilities(tree: dict[Tokens, PrefixDistribution], trie: SuccessTrie) -> dict[Tokens, float]:
    """Return the probability of each text under walks through the trie that do not update it."""
    out = dict[Tokens, float]()
    stack: list[tuple[Tokens, TrieNode | None, float]] = [((), trie.root, 1.0)]
    while stack:
        tokens, node, chance = stack.pop()
        law = tree[tokens]
        weights = law.probs if node is None or not node.visited else trie.weights(node, law)
        total = float(weights.sum())
        for token, part in zip(law.tokens.tolist(), (weights / (total or 1.0)).tolist()):
            if token == END:
                out[tokens] = chance * part
            elif part > 0:
                child = None if node is None else node.children.get(token)
                stack.append(((*tokens, token), child, chance * part))
    return out
