"""Tokens per second under a constraint over tokens per second without one, beside the peers; no drafts.

For each schema, one text under it and one without a constraint of as many tokens, after the same prompt, by turns:
ours through `Engine`, the peers through transformers' `model.generate`. A ratio of 1 says that the constraint is free.
"of transformers" is ours under the constraint over `model.generate` of transformers without one, of exactly as many
tokens; for the peers it is the ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from .peers import PEERS, Refused, compile_within
from .timing import Run, count_rate, generate_free, generate_ours, generate_theirs, median_ratio, open_free_engine

__all__ = ["measure_plain"]

PROMPT = 400
"""Most characters of the schema that a prompt shows."""
Pair = tuple[Case, Sequence[int]]
"""A case, and the tokens of its prompt."""


def make_prompt(case: Case, most: int = PROMPT) -> str:
    """Return the prompt of a case: the beginning of the schema, so that it has an ordinary length."""
    return f"Write JSON for this schema.\n{case.schema[:most]}\n"


def measure_plain(
    loaded: Any, cases: Sequence[Case], *, most: int, repeat: int, prompt: int, seed: int,
    progress: Callable[[], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each engine: tokens per second with and without its constraint, and their ratio.

    most: tokens of a text. repeat: texts of each schema. prompt: most characters of the schema in its prompt.
    """
    import constrain

    prompts = [loaded.prompt_ids(make_prompt(case, prompt)) for case in cases]
    pairs = list(zip(cases, prompts))
    with constrain.Engine(loaded) as engine, open_free_engine(loaded) as unbound:
        rows = [{"engine": "constrain", **measure_engine(engine, unbound, pairs, most, repeat, seed, progress)}]
    for name, make in PEERS.items():
        found = measure_peer(loaded, make(loaded.vocabulary), pairs, most, repeat, seed, progress)
        rows.append({"engine": name, **found})
    return rows


def measure_engine(
    engine: Any, unbound: Any, pairs: Sequence[Pair], most: int, repeat: int, seed: int, progress: Callable[[], None]
) -> dict[str, Any]:
    """Measure our Engine. unbound: the one that writes texts without a constraint."""
    from constrain.base.errors import ConstrainError

    bound, free, theirs, refused = list[Run](), list[Run](), list[Run](), 0
    for number, (case, prompt) in enumerate(pairs):
        try:
            generate_ours(engine, prompt, schema=case.schema, max_tokens=most, seed=seed, draft="none")
        except ConstrainError:
            refused += 1
            continue
        for turn in range(repeat):
            here = seed + 1 + number * repeat + turn
            run = generate_ours(engine, prompt, schema=case.schema, max_tokens=most, seed=here, draft="none")
            bound.append(run)
            free.append(generate_free(unbound, prompt, tokens=run.tokens, seed=here))
            theirs.append(generate_theirs(engine.model, prompt, max_tokens=run.tokens, seed=here))
        progress()
    return {**describe(bound, free, refused), "of transformers": count_rate(bound) / count_rate(theirs)}


def measure_peer(
    loaded: Any, peer: Any, pairs: Sequence[Pair], most: int, repeat: int, seed: int, progress: Callable[[], None]
) -> dict[str, Any]:
    """Measure a peer inside transformers."""
    bound, free, refused = list[Run](), list[Run](), 0
    for number, (case, prompt) in enumerate(pairs):
        try:
            compile_within(peer, case.schema)
            generate_theirs(loaded, prompt, max_tokens=most, seed=seed, processor=peer.processor())
        except Refused:
            refused += 1
            continue
        for turn in range(repeat):
            here = seed + 1 + number * repeat + turn
            run = generate_theirs(loaded, prompt, max_tokens=most, seed=here, processor=peer.processor())
            bound.append(run)
            free.append(generate_theirs(loaded, prompt, max_tokens=run.tokens, seed=here))
        progress()
    found = describe(bound, free, refused)
    return {**found, "of transformers": found["ratio"]}


def describe(bound: Sequence[Run], free: Sequence[Run], refused: int) -> dict[str, Any]:
    """Return the figures of an engine."""
    if not bound:
        return {"constrained": None, "unconstrained": None, "ratio": None, "median ratio": None, "refused": refused}
    return {
        "constrained": count_rate(bound), "unconstrained": count_rate(free),
        "ratio": count_rate(bound) / count_rate(free), "median ratio": median_ratio(bound, free), "refused": refused,
    }  # fmt: skip
