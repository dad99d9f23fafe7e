"""How near is SMC to p given L on real constraints, with the learned twist and without it?

    python -m bench faithful real [--data ../shared/data/maskbench-dev.jsonl.gz] [--schemas 10] [--grammars 3]

The demo model under dev schemas and under grammars, `--particles` particles. Without the twist: masks alone. With it: a
table is learned until `--warm` rows of the model were fetched or `--most` populations were sampled; then
`--populations` are measured. A second table is learned with other random numbers, since populations that share a table
may have a common error: the spread is trusted only if both agree. Printed: log of the mean of Z-hat, its spread
(standard deviation of log Z-hat, in nats; populations that died apart), effective particles at the end, rows of the
model per population and of the warm-up, and the share of proposals that a `pimh` chain under the first table accepts.

What the twist costs beside the softmax of a row is measured on rows of 128,256 random logits under a JSON schema.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import constrain
from constrain import Vocabulary
from constrain.base.errors import ConstrainError, LimitError
from constrain.sampling.core.results import log_sum
from constrain.sampling.core.token_masses import Masses
from constrain.sampling.learned_twist.constraint_tables import new_table
from constrain.sampling.learned_twist.value_table import Values, ValueTable
from constrain.sampling.lookahead import build_lookahead
from constrain.sampling.particles import Masked, ParticleNode, Prefixes
from constrain.sampling.pimh import draw_pimh
from constrain.sampling.population_schedule import PopulationSchedule
from constrain.sampling.populations import Population, Settings
from constrain.sampling.smc import grow_population

from ..checkpoints import load_checkpoint
from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import build_table, print_table
from .real_tasks import RealTask, pick_grammars, pick_schemas
from .verdicts import Verdict, format_verdict

SPREAD = 0.5
"""Nats: the target for the standard deviation of log Z-hat."""
WANTED = 0.8
"""The share of the constraints on which the target must be met."""
AGREE = 0.5
"""Maximum difference of two tables in nats, in addition to two standard errors."""
LARGE = 128_256


class Spread(NamedTuple):
    """Figures of populations of one kind. log_z: of their mean estimate; error: its standard error, in nats. sd: of log
    Z-hat of those that survived. ess: mean effective number of particles at the end. rows: of the model per population.
    """

    log_z: float
    error: float
    sd: float
    dead: float
    ess: float
    rows: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 1 if the target is missed, else 0."""
    parser = build_parser("faithful.real", __doc__, "data", "seed", "checkpoint", "results", checkpoint="demo", seed=1)
    parser.add_argument("--schemas", type=int, default=10, help="number of schemas")
    parser.add_argument("--grammars", type=int, default=3, help="number of grammars")
    parser.add_argument("--particles", type=int, default=16, help="particles of a population")
    parser.add_argument("--populations", type=int, default=12, help="measured populations of each kind")
    parser.add_argument("--warm", type=int, default=2500, help="rows of the model to learn a table from")
    parser.add_argument("--most", type=int, default=12, help="maximum number of populations to learn a table from")
    parser.add_argument("--tokens", type=int, default=64, help="max_tokens")
    parser.set_defaults(sample=None)
    options = parser.parse_args(arguments)
    console, begin = Console(), perf_counter()
    model = load_checkpoint(options.checkpoint)
    cost = measure_cost(options.seed)
    console.print(describe_cost(cost), highlight=False)
    tasks = [
        *pick_schemas(read_cases(options), model, options.schemas, options.tokens, options.seed),
        *pick_grammars(model, options.grammars, options.tokens, options.seed),
    ]
    rows = []
    for task in tasks:
        rows.append(measure_task(task, options))
        console.print(f"{perf_counter() - begin:.0f} s: {describe_row(rows[-1])}", highlight=False, soft_wrap=True)
    print_table(build_spreads(rows), console)
    verdicts = judge_rows(rows, cost)
    for verdict in verdicts:
        console.print(format_verdict(verdict), highlight=False)
    write_result(options, {"rows": rows, "cost": cost, "verdicts": [verdict._asdict() for verdict in verdicts]})
    return 0 if all(verdict.met for verdict in verdicts) else 1


def measure_task(task: RealTask, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one constraint: masks alone, and two tables learned independently."""
    settings = Settings.of(task.max_tokens)
    found: dict[str, Any] = {"name": task.name}
    prefixes = Prefixes(task.lm, task.constraint)
    rng = np.random.default_rng([options.seed, 0])
    found["masks"] = measure_spread(
        lambda: grow_population(prefixes, options.particles, settings, rng), task, options.populations
    )
    for number, name in enumerate(("learned", "again"), 1):
        rng = np.random.default_rng([options.seed, number])
        schedule = PopulationSchedule(
            Prefixes(task.lm, task.constraint), options.particles, settings, new_table(task.constraint), None
        )
        before, grown = task.lm.evaluations, 0
        while grown < options.most and task.lm.evaluations - before < options.warm:
            schedule.grow(rng)
            grown += 1
        found[f"warm-up of {name}"] = task.lm.evaluations - before
        found[name] = measure_spread(lambda: schedule.grow(rng), task, options.populations)  # noqa: B023
        found[f"gap of {name}"] = schedule.finish()
        found[f"states of {name}"] = len(schedule.table.numbers)
        if name == "learned":
            found["acceptance"] = measure_acceptance(task, schedule.table, options)
    return found


def measure_acceptance(task: RealTask, table: ValueTable, options: argparse.Namespace) -> float:
    """Return the share of proposals that a chain under a learned table accepts, after its first text; NaN for none."""
    try:
        draws = draw_pimh(
            task.lm, task.constraint, n=options.populations + 1, rng=np.random.default_rng([options.seed, 3]),
            max_tokens=task.max_tokens, particles=options.particles, burn=0, attempts=options.populations, twist=table,
        )  # fmt: skip
    except LimitError:  # all populations died
        return math.nan
    populations = int(draws.stats["populations"])
    return float((draws.stats["acceptance"] * populations - 1) / (populations - 1))


def measure_spread(grow: Callable[[], Population], task: RealTask, populations: int) -> Spread:
    """Sample populations and return their figures."""
    before = task.lm.evaluations
    grown: list[Population] = [grow() for _ in range(populations)]
    log_zs = np.array([one.log_z for one in grown])
    alive = log_zs[log_zs > -np.inf]
    mean = log_sum(log_zs) - math.log(populations)
    weights = np.exp(log_zs - mean) if len(alive) else np.zeros(populations)
    living = [one.log_weights for one in grown if one.log_z > -np.inf]
    ess = [math.exp(2 * log_sum(logs) - log_sum(2 * logs)) for logs in living]
    return Spread(
        log_z=mean, error=float(weights.std(ddof=1)) / math.sqrt(populations),
        sd=float(alive.std(ddof=1)) if len(alive) > 1 else math.nan, dead=1 - len(alive) / populations,
        ess=float(np.mean(ess)) if ess else 0.0, rows=(task.lm.evaluations - before) / populations,
    )  # fmt: skip


def describe_row(row: dict[str, Any]) -> str:
    """Return the main figures of one constraint in one line."""
    parts = [f"{name} log Z {row[name].log_z:.2f} sd {row[name].sd:.2f}" for name in ("masks", "learned", "again")]
    return (
        f"{row['name']}: {', '.join(parts)}, gap {row['gap of learned']:.2f}, warm-up {row['warm-up of learned']} and "
        f"{row['warm-up of again']} rows, pimh accepts {row['acceptance']:.2f}"
    )


def agrees(row: dict[str, Any]) -> bool:
    """Return whether two tables give the same log Z, within AGREE nats and two standard errors."""
    one, other = row["learned"], row["again"]
    return bool(abs(one.log_z - other.log_z) <= AGREE + 2 * math.hypot(one.error, other.error))


def is_near(row: dict[str, Any]) -> bool:
    """Return whether the spread of the learned twist meets the target with both tables, and these agree."""
    return agrees(row) and all(row[table].sd <= SPREAD and not row[table].dead for table in ("learned", "again"))


def is_worse(learned: Spread, masks: Spread) -> bool:
    """Return whether populations die more often with a table than without, or spread more and have a smaller log Z."""
    return learned.dead > masks.dead or (learned.sd > max(masks.sd, SPREAD) and learned.log_z < masks.log_z)


def judge_rows(rows: list[dict[str, Any]], cost: dict[str, float]) -> list[Verdict]:
    """Return the verdicts."""
    near = [row["name"] for row in rows if is_near(row)]
    worse = [row["name"] for row in rows if any(is_worse(row[table], row["masks"]) for table in ("learned", "again"))]
    return [
        Verdict(
            f"sd of log Z-hat at most {SPREAD} nats by two tables that agree, on {WANTED:.0%} of the constraints",
            len(near) >= WANTED * len(rows), f"on {len(near)} of {len(rows)}",
        ),
        Verdict("the twist is nowhere worse than masks alone", not worse, ", ".join(worse) or "nowhere"),
        Verdict(
            "the twist of a row costs at most its softmax, in float64", cost["twist"] <= cost["softmax"],
            f"{cost['twist']:.0f} µs beside {cost['softmax']:.0f} µs",
        ),
    ]  # fmt: skip


def build_spreads(rows: list[dict[str, Any]]) -> Any:
    """Return the table of all constraints."""
    columns = ["log Z", "sd", "dead", "ess", "rows"]
    table = build_table(
        "masks alone | learned twist | second table", ["constraint"],
        [*columns, *(f"{c} " for c in columns), "log Z  ", "sd  ", "gap", "states", "accepts"],
    )  # fmt: skip
    for row in rows:
        cells = []
        for one in (row["masks"], row["learned"]):
            cells += [f"{one.log_z:.2f}", f"{one.sd:.2f}", f"{one.dead:.0%}", f"{one.ess:.1f}", f"{one.rows:.0f}"]
        cells[5] = ("+" if is_near(row) else "!") + cells[5]
        again = row["again"]
        table.add_row(
            row["name"],
            *cells,
            f"{again.log_z:.2f}",
            f"{again.sd:.2f}",
            f"{row['gap of learned']:.2f}",
            str(row["states of learned"]),
            f"{row['acceptance']:.2f}",
        )
    return table


# ---- time ------------------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["name", "tags"],
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
}  # fmt: skip


class RandomModel:
    """A LanguageModel of random logits: rows of a large vocabulary without a large model."""

    def __init__(self, size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.logits = rng.normal(scale=3.0, size=(8, size)).astype(np.float32)
        self.logs = self.logits - np.log(np.exp(self.logits).sum(axis=1, keepdims=True))

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        """See `LanguageModel`."""
        return np.array([self.logs[(len(prefix) + sum(prefix)) % 8] for prefix in prefixes])


def measure_cost(seed: int, texts: int = 200) -> dict[str, float]:
    """Return µs of CPU per row at a vocabulary of LARGE tokens, medians over the rows of a text.

    softmax: as `PromptedModel` computes it, with torch in float64. numpy, torch: in float32. sums: the mass of the
    allowed tokens, which masks alone need, too. whole: sums, lookahead and values. twist: whole less sums.
    """
    vocabulary = build_large_vocabulary()
    lm, rng, move = RandomModel(vocabulary.size, seed), np.random.default_rng(seed), Masked()
    constraint = constrain.compile(vocabulary, schema=SCHEMA)
    prefixes, table = Prefixes(lm, constraint), new_table(constraint)
    node, times = prefixes.root, list[tuple[float, ...]]()
    for number in range(texts):
        prefixes.fetch_rows([node])
        times.append(time_row(prefixes, node, lm.logits[number % 8], table))
        made = move(prefixes, node, 1000 - number, rng)
        if made.token is None or made.token in prefixes.ends:
            prefixes.clear()
            node = prefixes.root
        else:
            node = prefixes.child(node, made)
    medians = [float(one) * 1e6 for one in np.median(times, axis=0)]
    return dict(zip(("softmax", "numpy", "torch", "sums", "whole"), medians)) | {"twist": medians[4] - medians[3]}


def time_row(prefixes: Prefixes, node: ParticleNode, logits: Any, table: ValueTable) -> tuple[float, ...]:
    """Return seconds of CPU of the five things that `measure_cost` compares, at one text."""
    import torch

    torch.set_num_threads(1)
    row, tensor, values = node.row, torch.from_numpy(logits), Values(table)
    mask = node.matcher.mask()
    assert row is not None

    def look_ahead() -> None:
        ahead = build_lookahead(prefixes, node, 500, table.numbers)
        values.of_pairs(ahead.slots, ahead.tokens, 499)

    calls: list[Callable[[], object]] = [
        lambda: torch.log_softmax(tensor.double(), -1), lambda: normalise(logits),
        lambda: torch.log_softmax(tensor, -1), lambda: Masses(row, mask), look_ahead,
    ]  # fmt: skip
    return tuple(time_call(call) for call in calls)


def normalise(logits: Any) -> Any:
    """Return the log-softmax of float32 logits."""
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def time_call(call: Callable[[], object]) -> float:
    """Return seconds of this process's CPU time."""
    begin = process_time()
    call()
    return process_time() - begin


def build_large_vocabulary() -> Vocabulary:
    """Return a vocabulary of LARGE tokens: single bytes, JSON's frequent pieces, and words of random letters."""
    rng = np.random.default_rng(0)
    tokens = [bytes([one]) for one in range(256)] + [b'":', b'": "', b'", "', b'"]', b'"}', b"[]", b"{}", b'["']
    known, letters = set(tokens), np.frombuffer(b"etaoinshrdlucmfwypvbgkqjxz ", np.uint8)
    while len(tokens) < LARGE - 1:
        word = letters[rng.integers(0, len(letters), int(rng.integers(2, 9)))].tobytes()
        if word not in known:
            known.add(word)
            tokens.append(word)
    return Vocabulary.from_tokens([*tokens, None], eos_ids=[LARGE - 1])


def describe_cost(cost: dict[str, float]) -> str:
    """Return the costs in one sentence."""
    return (
        f"A row of {LARGE:,} tokens, µs of CPU: softmax {cost['softmax']:.0f} in float64 (as for "
        f"models of transformers), in float32 {cost['numpy']:.0f} in numpy, {cost['torch']:.0f} in torch; "
        f"sum of what is allowed {cost['sums']:.0f}; the twist on top of it {cost['twist']:.0f}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConstrainError as error:
        sys.exit(str(error))
