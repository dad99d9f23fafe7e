"""Token budgets: is every answer valid and within its budget? Five budgets for each schema, with the peers.

With k the tokens of the shortest answer, the budgets are k, k + 1, 1.25 k, 1.5 k and 2 k (increasing by at least one).
An answer is valid if jsonschema with exact arithmetic says so (see `mask_errors.judge`). The peers have no budgets:
their texts are cut off at `max_new_tokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..corpus import Case
from ..mask_errors.judge import Judge, build_judge
from .peers import PEERS, Refused, compile_within
from .plain import make_prompt
from .timing import generate_theirs

__all__ = ["count_least", "list_budgets", "measure_budgets"]

FACTORS = (1.0, 1.0, 1.25, 1.5, 2.0)


def list_budgets(least: int) -> list[int]:
    """Return five increasing budgets, from the tokens of the shortest answer upward."""
    budgets: list[int] = []
    for factor in FACTORS:
        budgets.append(max(round(least * factor), budgets[-1] + 1 if budgets else least))
    return budgets


def count_least(constraint: Any) -> int | None:
    """Return the number of tokens of the shortest text found, with the end token; None if no tokens spell it."""
    data = constraint.matcher().shortest_completion()
    return None if data is None else len(constraint.vocabulary.fewest(data)) + 1


def judge_text(judge: Judge | None, text: str) -> bool | None:
    """Return whether a text is valid; None if it cannot be judged."""
    if judge is None:
        return None
    verdict = judge(text)
    return verdict.exact if verdict.exact is not None else verdict.plain


class Tally:
    """Counts of one engine."""

    def __init__(self) -> None:
        names = ("answers", "valid", "invalid", "not judged", "over budget", "refused", "too long")
        self.counts = dict.fromkeys(names, 0)

    def add(self, valid: bool | None, tokens: int, budget: int) -> None:
        """Count one answer."""
        self.counts["answers"] += 1
        self.counts["not judged" if valid is None else "valid" if valid else "invalid"] += 1
        self.counts["over budget"] += tokens > budget


def measure_budgets(
    engine: Any, cases: Sequence[Case], *, most: int, peers: int, seed: int, progress: Callable[[], None]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each engine, and the invalid answers of ours.

    most: maximum number of tokens of a shortest answer; other schemas are skipped and counted. peers: number of schemas
    that the peers run.
    """
    import constrain
    from constrain.base.errors import ConstrainError

    made_peers = {name: make(engine.vocabulary) for name, make in PEERS.items()}
    tallies = {name: Tally() for name in ("constrain", *made_peers)}
    wrong: list[str] = []
    for number, case in enumerate(cases):
        progress()
        try:
            constraint = constrain.compile(engine.vocabulary, schema=case.schema)
            least = count_least(constraint)
        except ConstrainError:
            tallies["constrain"].counts["refused"] += 1
            continue
        if least is None or least > most:
            tallies["constrain"].counts["too long"] += 1
            continue
        judge = build_judge(case.schema)  # None: its answers are counted as not judged
        prompt, budgets = engine.model.prompt_ids(make_prompt(case)), list_budgets(least)
        for budget in budgets:
            made = engine.generate(prompt, schema=case.schema, max_tokens=budget, seed=seed + number)
            valid = judge_text(judge, made.text)
            tallies["constrain"].add(valid, made.stats.tokens, budget)
            if valid is False:
                wrong.append(f"{case.id}: {made.text[:200]}")
        if number < peers:
            for name, peer in made_peers.items():
                measure_peer(engine.model, peer, case, prompt, budgets, judge, tallies[name], seed + number)
    return [{"engine": name, **tally.counts} for name, tally in tallies.items()], wrong


def measure_peer(
    loaded: Any, peer: Any, case: Case, prompt: Sequence[int], budgets: Sequence[int], judge: Judge | None,
    tally: Tally, seed: int,
) -> None:  # fmt: skip
    """Generate within the budgets with a peer."""
    try:
        compile_within(peer, case.schema)
    except Refused:
        tally.counts["refused"] += 1
        return
    for budget in budgets:
        run = generate_theirs(loaded, prompt, max_tokens=budget, seed=seed, processor=peer.processor())
        text = loaded.vocabulary.decode(run.ids)
        tally.add(judge_text(judge, text), run.tokens, budget)
