"""Tokens per second under a constraint over tokens per second without one, with the peers; no drafts.

For each schema, a text under it alternates with an unconstrained text of as many tokens, after the same prompt: ours
with `Engine`, the peers with transformers' `model.generate`. A ratio of 1 means that the constraint costs no time.
"of transformers" is the rate of our Engine under the constraint over that of `model.generate` without one, for exactly
as many tokens; for the peers it equals the ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from .peers import PEERS, Refused, compile_within
from .timing import (
    Run,
    compute_median_ratio,
    compute_rate,
    generate_free,
    generate_ours,
    generate_theirs,
    open_free_engine,
)

__all__ = ["measure_plain"]

PROMPT = 400
"""Maximum number of characters of the schema in a prompt."""
Pair = tuple[Case, Sequence[int]]
"""A case, and the tokens of its prompt."""


def make_prompt(case: Case, most: int = PROMPT) -> str:
    """Return the prompt of a case. The schema is truncated, so that prompts have a usual length."""
    return f"Write JSON for this schema.\n{case.schema[:most]}\n"


def measure_plain(
    loaded: Any, cases: Sequence[Case], *, most: int, repeat: int, prompt: int, seed: int,
    progress: Callable[[], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each engine: tokens per second with and without its constraint, and their ratio.

    most: max_tokens. repeat: texts of each schema. prompt: maximum number of characters of the schema in its prompt.
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
    """Measure our Engine. unbound: an Engine of `open_free_engine`."""
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
    return {**compute_rates(bound, free, refused), "of transformers": compute_rate(bound) / compute_rate(theirs)}


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
    found = compute_rates(bound, free, refused)
    return {**found, "of transformers": found["ratio"]}


def compute_rates(bound: Sequence[Run], free: Sequence[Run], refused: int) -> dict[str, Any]:
    """Return the rates of an engine with and without a constraint, and their ratio."""
    if not bound:
        return {"constrained": None, "unconstrained": None, "ratio": None, "median ratio": None, "refused": refused}
    return {
        "constrained": compute_rate(bound), "unconstrained": compute_rate(free),
        "ratio": compute_rate(bound) / compute_rate(free), "median ratio": compute_median_ratio(bound, free),
        "refused": refused,
    }  # fmt: skip
