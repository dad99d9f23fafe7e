"""Tokens per second with forced runs over those without a constraint, on the structured half of the schemas.

The *structured half* of the schemas has the documents with the largest share of forced bytes: in the first valid
document of each schema in the corpus, a byte is forced if the constraint allows no other in its place.

*Texts.* "document": the model is made to write that document (`written_texts`) to its end, under the constraint and
without one, alternating. "own": the model samples a text under the constraint, and one of as many tokens without.
*Ways to write forced text.* Appended with the tokens of the tokenizer, with their probabilities ("canonical") or
without ("unscored"), drafted and sampled ("sample", lossless over sequences of tokens), or like other text ("none").

*Limits.* A token that is not forced takes a forward pass. "limit" is tokens over passes: the ratio if a pass over many
tokens took as long as over one, and all else no time (Amdahl 1967). Passes over several tokens take longer, above all
on a CPU, where the product of a matrix with two vectors takes up to twice as long as with one. "model limit" includes
that: it is the ratio of the time in forward passes per token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..corpus import Case
from .plain import make_prompt
from .timing import Run, compute_median_ratio, compute_rate, generate_free, generate_ours
from .written_texts import WrittenText

__all__ = ["Document", "count_forced_share", "find_structured_half", "measure_documents", "measure_own_texts"]

MODES: dict[str, dict[str, Any]] = {
    "unscored": {"forced": "unscored"},
    "canonical": {"forced": "canonical"},
    "sample": {"forced": "sample"},
    "none": {"draft": "none"},
}
LONGEST = 2_000
"""Maximum number of characters of a document."""


class Document(NamedTuple):
    """A schema and a document that it accepts, without white space."""

    case: Case
    data: bytes


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
    vocabulary: Any, cases: Sequence[Case], progress: Callable[[], None]
) -> tuple[list[Document], int]:
    """Return the half of the documents with the largest share of forced bytes, and the number of schemas without one.

    A schema has none if it is refused, or its documents are too long or have keys in another order than the schema.
    """
    import constrain
    from constrain.base.errors import ConstrainError

    found, missing = [], 0
    for case in cases:
        try:
            constraint = constrain.compile(vocabulary, schema=case.schema, style=constrain.Style(whitespace="compact"))
            data = find_document(constraint, case)
        except ConstrainError:
            data = None
        if data is None:
            missing += 1
        else:
            found.append((count_forced_share(constraint, data), Document(case, data)))
        progress()
    found.sort(key=lambda pair: -pair[0])
    return [document for _, document in found[: (len(found) + 1) // 2]], missing


def find_document(constraint: Any, case: Case) -> bytes | None:
    """Return the first valid document of a case that a constraint accepts, without white space."""
    from constrain.base.errors import ConstrainError

    for test in case.tests:
        if not test.valid or len(test.text) > LONGEST:
            continue
        data = json.dumps(json.loads(test.text), ensure_ascii=False, separators=(",", ":")).encode()
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(data)
        except ConstrainError:
            continue
        if matcher.is_complete:
            return data
    return None


def measure_documents(
    engine: Any, documents: Sequence[Document], *, styles: Sequence[str], prompt: int, seed: int,
    progress: Callable[[], None],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each style of white space and way to write forced text, while the model writes documents.

    prompt: maximum number of characters of the schema in its prompt.
    """
    import constrain

    bound: dict[tuple[str, str], list[Run]] = {}
    free: dict[tuple[str, str], list[Run]] = {}
    for case, data in documents:
        ids = engine.model.prompt_ids(make_prompt(case, prompt))
        most = 2 * len(engine.vocabulary.tokenize(data)) + 8
        for style in styles:
            shared = {"schema": case.schema, "style": constrain.Style(whitespace=style)}  # type: ignore[arg-type]
            with WrittenText(engine.model.model, engine.vocabulary, len(ids), data):
                generate_ours(engine, ids, max_tokens=most, seed=seed, **shared)  # warms up
            for mode, options in MODES.items():
                options = {**options, **shared}
                with WrittenText(engine.model.model, engine.vocabulary, len(ids), data):
                    run = generate_ours(engine, ids, max_tokens=most, seed=seed, **options)
                with WrittenText(engine.model.model, engine.vocabulary, len(ids), data):
                    plain = generate_ours(engine, ids, max_tokens=most, seed=seed, draft="none")
                bound.setdefault((style, mode), []).append(run)
                free.setdefault((style, mode), []).append(plain)
        progress()
    return [
        {"text": "document", "white space": style, "forced text": mode, **compare_runs(runs, free[style, mode])}
        for (style, mode), runs in bound.items()
    ]


def measure_own_texts(
    engine: Any, unbound: Any, documents: Sequence[Document], *, most: int, seed: int, progress: Callable[[], None]
) -> list[dict[str, Any]]:
    """Return a row for each way to write forced text, while the model samples its texts.

    unbound: an Engine of `open_free_engine`.
    """
    bound: dict[str, list[Run]] = {mode: [] for mode in MODES}
    free: dict[str, list[Run]] = {mode: [] for mode in MODES}
    for number, (case, _) in enumerate(documents):
        prompt = engine.model.prompt_ids(make_prompt(case))
        for mode, options in MODES.items():
            options = {**options, "schema": case.schema, "max_tokens": most, "errors": "raise"}
            generate_ours(engine, prompt, seed=seed, **options)
            run = generate_ours(engine, prompt, seed=seed + 1 + number, **options)
            bound[mode].append(run)
            free[mode].append(generate_free(unbound, prompt, tokens=run.tokens, seed=seed + 1 + number))
        progress()
    return [
        {"text": "own", "white space": "flexible", "forced text": mode, **compare_runs(bound[mode], free[mode])}
        for mode in MODES
    ]


def compare_runs(bound: Sequence[Run], free: Sequence[Run]) -> dict[str, Any]:
    """Return the figures of runs under a constraint and without one."""
    tokens, passes = sum(run.tokens for run in bound), sum(run.passes for run in bound)
    return {
        "constrained": compute_rate(bound), "unconstrained": compute_rate(free),
        "ratio": compute_rate(bound) / compute_rate(free), "median ratio": compute_median_ratio(bound, free),
        "forced tokens": 1 - passes / tokens, "limit": tokens / passes,
        "model limit": compute_model_rate(bound) / compute_model_rate(free), "tokens": tokens, "texts": len(bound),
    }  # fmt: skip


def compute_model_rate(runs: Sequence[Run]) -> float:
    """Return tokens per second of forward passes over all runs."""
    return sum(run.tokens for run in runs) / sum(run.model_seconds for run in runs)
