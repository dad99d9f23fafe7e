"""Tokens per second with forced runs over those without a constraint, on the structured half of the schemas.

The *structured half* are the schemas whose texts are forced for the larger part: a text is generated under each, the
share of its bytes that the constraint forced is counted (a byte is forced if no other may stand in its place), and the
half with the larger shares is measured. An unconstrained text of as many tokens after the same prompt is the base, by
turns. Rows: forced runs that are appended with the tokens of the tokenizer ("canonical"), forced runs as drafts whose
tokens are sampled ("sample", lossless over sequences of tokens), and none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from .plain import make_prompt
from .timing import Run, count_rate, generate_free, generate_ours, median_ratio

__all__ = ["count_forced_share", "find_structured_half", "measure_forced"]

MODES: dict[str, dict[str, Any]] = {
    "canonical": {"forced": "canonical"},
    "sample": {"forced": "sample"},
    "none": {"draft": "none"},
}


def count_forced_share(constraint: Any, data: bytes) -> float:
    """Return the share of the bytes of a text of the constraint that were forced."""
    matcher, place, forced = constraint.matcher(), 0, 0
    while place < len(data):
        run = matcher.forced()[: len(data) - place]
        step = run or data[place : place + 1]
        forced += len(run)
        matcher.advance_bytes(step)
        place += len(step)
    return forced / max(len(data), 1)


def find_structured_half(
    engine: Any, cases: Sequence[Case], most: int, seed: int, progress: Callable[[], None]
) -> list[Case]:
    """Return the half of the cases whose texts are forced for the larger part."""
    import constrain
    from constrain.base.errors import ConstrainError

    shares = []
    for case in cases:
        try:
            made = engine.generate(
                engine.model.prompt_ids(make_prompt(case)), schema=case.schema, max_tokens=most, seed=seed
            )
            constraint = constrain.compile(engine.vocabulary, schema=case.schema)
            shares.append((count_forced_share(constraint, made.text.encode()), case))
        except ConstrainError:
            continue
        finally:
            progress()
    shares.sort(key=lambda pair: -pair[0])
    return [case for _, case in shares[: (len(shares) + 1) // 2]]


def measure_forced(
    engine: Any, cases: Sequence[Case], *, most: int, seed: int, progress: Callable[[], None]
) -> list[dict[str, Any]]:
    """Return a row for each way to handle forced text. cases: the structured half."""
    bound: dict[str, list[Run]] = {mode: [] for mode in MODES}
    free: dict[str, list[Run]] = {mode: [] for mode in MODES}
    for number, case in enumerate(cases):
        prompt = engine.model.prompt_ids(make_prompt(case))
        for mode, options in MODES.items():
            generate_ours(engine, prompt, schema=case.schema, max_tokens=most, seed=seed, **options)
            run = generate_ours(engine, prompt, schema=case.schema, max_tokens=most, seed=seed + 1 + number, **options)
            bound[mode].append(run)
            free[mode].append(generate_free(engine, prompt, tokens=run.tokens, seed=seed + 1 + number))
        progress()
    return [
        {
            "forced text": mode, "constrained": count_rate(bound[mode]), "unconstrained": count_rate(free[mode]),
            "ratio": count_rate(bound[mode]) / count_rate(free[mode]),
            "median ratio": median_ratio(bound[mode], free[mode]), "schemas": len(cases),
        }
        for mode in MODES
    ]  # fmt: skip
