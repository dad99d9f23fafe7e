"""What does drawing from the right distribution cost, besides the model?

    python -m bench sampling_cost [--genlm /path/to/another/venv/bin/python]

*Outside the model*: µs per particle and token with a vocabulary of 128,256. The model is a synthetic one that favours
one valid instance of a schema (its next token has probability `--sure`, all tokens share the rest, with a long tail),
and the time spent in it is subtracted. *Checks and answers*: the embedded model writes an instance of each dev schema:
constraint checks per token of AWRS with the Matcher as checker, and calls, rows and attempts per answer.
Times are CPU times of the process, the best of `--repeat` runs, so that other work on the machine matters less. For
comparison: the time to read a row once, and to sum its exponentials under a mask.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import constrain
from constrain import Vocabulary
from constrain.base.errors import ConstrainError
from constrain.engine.constraint import Constraint
from constrain.sampling import asap, awrs, smc, trie_rejection, without_replacement
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.results import Draws
from constrain.sampling.core.token_masses import Masses
from constrain.sampling.particles import Awrs, Masked
from tests.text_acceptance import accepts_tokens

from .checkpoints import load_checkpoint
from .corpus import ENDS, SIZE, Case, Llama3, choose_cases, load_cases
from .counted_models import CountedModel
from .options import build_parser
from .record import write_result
from .tables import build_table, print_table

TAILS = 8
"""Number of different tails; they are used in turn along a text."""
TAIL = 1.2, 10.0
"""p of the token of rank r in the tail is as (r + 10) ** -1.2: about what models leave for unlikely tokens."""
Rows = NDArray[np.float32]


class FavouredText:
    """A `LanguageModel` that favours one text: at each position the next token of the text has probability `sure`.

    tails: from `build_tails`. spent: seconds of CPU time inside the model.
    """

    def __init__(self, tails: Rows, text: list[int], sure: float, end: int) -> None:
        self.tails, self.text, self.sure, self.end = tails, text, np.log(sure), end
        self.spent = 0.0

    def next_logprobs(self, prefixes: list[list[int]]) -> Rows:
        begin = process_time()
        out = np.empty((len(prefixes), self.tails.shape[1]), np.float32)
        for row, prefix in zip(out, prefixes):
            position = len(prefix)
            row[:] = self.tails[position % len(self.tails)]
            row[self.text[position] if position < len(self.text) else self.end] = self.sure
        self.spent += process_time() - begin
        return out


Draw = Callable[..., Draws]
Save = Callable[[], object]
SAMPLERS: dict[str, Draw] = {
    "masked": masked_sampling.draw_masked,
    "masked SMC": lambda *given, **more: smc.draw_smc(*given, move=Masked(), **more),
    "AWRS, no mask": lambda *given, **more: awrs.draw_awrs(*given, masks="never", **more),
    "AWRS, mask late": awrs.draw_awrs,
    "AWRS, mask first": lambda *given, **more: awrs.draw_awrs(*given, masks="first", **more),
    "AWRS-SMC": lambda *given, **more: smc.draw_smc(*given, move=Awrs(), **more),
    "exact": trie_rejection.draw_exact,
    "ASAp": asap.draw_asap,
    "distinct": lambda *given, **more: without_replacement.draw_without_replacement(
        *given, **{"prefixes": 400, **more}
    ),
}


def build_tails(sure: float, seed: int = 0) -> Rows:
    """Return float32 [TAILS, SIZE]: log-probabilities of mass 1 - sure in all, over the tokens in random orders."""
    rng = np.random.default_rng(seed)
    exponent, shift = TAIL
    tail = (np.arange(SIZE) + shift) ** -exponent
    logs = np.log(tail / tail.sum() * (1 - sure)).astype(np.float32)
    return np.array([logs[rng.permutation(SIZE)] for _ in range(TAILS)])


def measure_outside(
    cases: list[tuple[Case, Constraint, list[int]]], options: argparse.Namespace, found: dict[str, Any], save: Save
) -> dict[str, Any]:
    """Measure µs per particle and token outside the model for each sampler, and return `found` with these figures.

    Each row has the mean over all steps (`pooled`) and the median and 90th percentile over schemas. A step is one token
    of one particle; for samplers that walk through a trie it is a visited node, rejected attempts included.
    """
    tails = build_tails(options.sure)
    for name, draw in SAMPLERS.items():
        costs = []
        for number, (_, constraint, tokens) in enumerate(cases):
            runs = []
            for _ in range(options.repeat):
                lm = FavouredText(tails, tokens, options.sure, ENDS[0])
                begin = process_time()
                try:
                    with limit_time(options.seconds):
                        draws = draw(
                            lm, constraint, n=options.particles, rng=np.random.default_rng(1), max_tokens=options.tokens
                        )
                except (ConstrainError, OutOfTime) as error:
                    print(f"{name}, schema {number}: {error!r}", file=sys.stderr)
                    break
                runs.append(process_time() - begin - lm.spent)
            if runs:
                steps = draws.stats.get("steps", sum(len(one.tokens) + 1 for one in draws))
                costs.append((min(runs) * 1e6, steps, draws.stats.get("checks", 0)))
        if not costs:
            continue
        each = [spent / steps for spent, steps, _ in costs]
        total = sum(steps for _, steps, _ in costs)
        pooled = sum(spent for spent, _, _ in costs) / total
        print(f"{name}: {pooled:.0f} µs", file=sys.stderr, flush=True)
        found[name] = {"pooled": pooled, "p50": float(np.median(each)), "p90": float(np.quantile(each, 0.9)),
                       "schemas": len(each),
                       "checks_per_token": sum(checks for _, _, checks in costs) / total}  # fmt: skip
        save()
    found["(a row read once)"], found["(its masses added up)"] = measure_lower_bounds(tails)
    return found


def measure_lower_bounds(tails: Rows) -> list[dict[str, Any]]:
    """Measure what a step needs at least: µs to read a row, by BLAS, and to sum its masses under a dense mask.

    `pooled` is the best of 300 runs.
    """
    mask = np.full(-(-SIZE // 32), -1, np.int32)
    found = []
    for work in (lambda row: row.dot(row), lambda row: Masses(row, mask)):
        times = []
        for k in range(300):
            begin = perf_counter()
            work(tails[k % len(tails)])
            times.append((perf_counter() - begin) * 1e6)
        found.append({"pooled": min(times), "p50": float(np.median(times)), "p90": float(np.quantile(times, 0.9)),
                      "schemas": 0})  # fmt: skip
    return found


class OutOfTime(Exception):
    """A draw took longer than --seconds."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise OutOfTime if the block takes longer. Main thread only."""

    def stop(*_: object) -> None:
        raise OutOfTime(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure_answers(cases: list[Case], options: argparse.Namespace, figures: dict[str, Any], save: Save) -> None:
    """Measure checks per token of AWRS and the cost of an answer, for each sampler with the embedded model.

    `figures` is updated, and saved, after each schema; no schema is begun after --minutes.
    """
    model = load_checkpoint(options.checkpoint)
    assert model.compose is not None
    samplers = {name: SAMPLERS[name] for name in options.answering}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in samplers}
    failures: dict[str, int] = dict.fromkeys(samplers, 0)
    until = monotonic() + 60 * options.minutes
    for case in cases:
        if monotonic() > until:
            break
        schema = json.loads(case.schema)
        try:
            constraint = constrain.compile(model.vocabulary, schema=schema)
        except ConstrainError:
            continue
        for name, draw in samplers.items():
            lm = CountedModel(model.on(model.compose(None, schema=schema)))
            more = {"attempts": 40} if name == "exact" else {"prefixes": 1000} if name == "distinct" else {}
            try:
                with limit_time(options.seconds):
                    draws = draw(
                        lm,
                        constraint,
                        n=options.answers,
                        rng=np.random.default_rng(2),
                        max_tokens=options.tokens,
                        **more,
                    )
            except (ConstrainError, OutOfTime):
                failures[name] += 1
                continue
            good = max(sum(one.log_weight > -np.inf for one in draws), 1)
            stats: dict[str, float] = {
                key: float(draws.stats[key]) for key in ("checks_per_token", "acceptance") if key in draws.stats
            }
            rows[name].append({"rows": lm.evaluations / good, "calls": draws.stats["model_calls"] / good, **stats})
        for name, found in rows.items():
            figures[name] = {**summarise_numbers(found), "schemas": len(found), "no answer": failures[name]}
        save()


def summarise_numbers(found: list[dict[str, float]]) -> dict[str, Any]:
    """Return the mean, median and 90th percentile of each number."""
    names = sorted({name for row in found for name in row})
    columns = {name: np.array([row[name] for row in found if name in row]) for name in names}
    return {
        name: {"mean": float(c.mean()), "p50": float(np.median(c)), "p90": float(np.quantile(c, 0.9))}
        for name, c in columns.items()
    }


def run_genlm(python: Path, tokens: list[bytes], cases: list[tuple[Case, Constraint, list[int]]],
          options: argparse.Namespace) -> dict[str, Any]:  # fmt: skip
    """Run AWRS with SMC of genlm-control in its own interpreter, on the same model (special tokens left out)."""
    script = Path(__file__).parent / "sampling_peers" / "genlm_control.py"
    with tempfile.TemporaryDirectory() as folder:
        rows = build_tails(options.sure)[:, : len(tokens) + 1]
        np.save(Path(folder) / "tails.npy", rows)
        job = {
            "tokens": [token.hex() for token in tokens], "tails": str(Path(folder) / "tails.npy"), "sure": options.sure,
            "particles": options.particles, "max_tokens": options.tokens, "seconds": options.genlm_seconds,
            "jobs": [{"schema": case.schema, "text": ids} for case, _, ids in cases[: options.genlm_schemas]],
        }  # fmt: skip
        run = subprocess.run([python, script], input=json.dumps(job), capture_output=True, text=True, check=False)
    if run.returncode:
        return {"error": run.stderr[-2000:]}
    found = json.loads(run.stdout)
    good = [one for one in found if "error" not in one and one["steps"]]
    if not good:
        return {"error": "; ".join(one.get("error", "no step") for one in found)}
    each = [one["seconds"] * 1e6 / one["steps"] for one in good]
    steps = sum(one["steps"] for one in good)
    return {
        "pooled": sum(one["seconds"] for one in good) * 1e6 / steps, "p50": float(np.median(each)),
        "p90": float(np.quantile(each, 0.9)), "schemas": len(good),
        "checks_per_token": sum(one["checks"] for one in good) / steps,
        "failures": [one["error"] for one in found if "error" in one],
    }  # fmt: skip


def prepare_cases(cases: list[Case], vocabulary: Vocabulary, llama: Llama3, options: argparse.Namespace) -> list[Any]:
    """Return (case, constraint, tokens of a valid instance) for schemas that compile and have a short
    enough instance.
    """
    found = []
    for case in cases:
        texts = [test.text for test in case.tests if test.valid]
        tokens = [llama.encode(text) for text in texts]
        fitting = [t for t in tokens if 4 <= len(t) < options.tokens]
        if not fitting:
            continue
        try:
            constraint = constrain.compile(
                vocabulary, schema=json.loads(case.schema), style=constrain.Style(key_order="any")
            )
        except ConstrainError:
            continue
        if accepts_tokens(constraint, fitting[0]):
            found.append((case, constraint, fitting[0]))
        if len(found) == options.schemas:
            break
    return found


def print_costs(facts: dict[str, Any]) -> None:
    """Print the tables."""
    figures = ("pooled", "p50 of schemas", "p90", "checks a token", "schemas")
    table = build_table("µs per particle and token outside the model, 128k vocabulary", ["sampler"], figures)
    for name, row in facts["outside"].items():
        if "pooled" in row:
            checks = f"{row['checks_per_token']:.1f}" if row.get("checks_per_token") else ""
            times = (f"{row[key]:,.0f}" for key in ("pooled", "p50", "p90"))
            table.add_row(name, *times, checks, str(row["schemas"]))
    print_table(table)
    columns = ("checks a token", "rows an answer", "calls an answer", "acceptance", "schemas", "no answer")
    table = build_table("the embedded model under dev schemas: median, mean", ["sampler"], columns)
    for name, row in facts["answers"].items():
        cells = [f"{row[k]['p50']:.2f}, {row[k]['mean']:.2f}" if k in row else ""
                 for k in ("checks_per_token", "rows", "calls", "acceptance")]  # fmt: skip
        table.add_row(name, *cells, str(row["schemas"]), str(row["no answer"]))
    print_table(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    options = read_options(arguments)
    llama = Llama3(options.vocabulary)
    vocabulary = Vocabulary.from_tokens([*llama.tokens, *[None] * (SIZE - len(llama.tokens))], eos_ids=ENDS)
    cases = load_cases(options.data)
    chosen = choose_cases(cases, sample=options.schemas * 6, seed=options.seed)
    ready = prepare_cases(chosen, vocabulary, llama, options)
    facts: dict[str, Any] = {"clock": "cpu", "outside": {}, "answers": {}}

    def save() -> None:
        write_result(options, facts)

    measure_outside(ready, options, facts["outside"], save)
    if options.genlm is not None:
        facts["outside"]["genlm-control, AWRS-SMC"] = run_genlm(options.genlm, llama.tokens, ready, options)
        save()
    small = [case for case in cases if len(case.schema) < 2000]
    measure_answers(
        choose_cases(small, sample=options.demo_schemas, seed=options.seed), options, facts["answers"], save
    )
    save()
    print_costs(facts)
    return 0


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. --seconds limits one draw; each draw is repeated --repeat times and the best counts."""
    shared = ("data", "vocabulary", "seed", "seconds", "repeat", "checkpoint", "results")
    parser = build_parser("sampling_cost", __doc__, *shared, seconds=20.0)
    parser.add_argument("--schemas", type=int, default=30, help="schemas for the times")
    parser.add_argument("--demo-schemas", type=int, default=60, help="schemas for the embedded model")
    parser.add_argument("--particles", type=int, default=8, help="particles of a draw")
    parser.add_argument("--answers", type=int, default=4, help="answers to each demo schema")
    parser.add_argument("--tokens", type=int, default=64, help="max_tokens")
    parser.add_argument("--sure", type=float, default=0.9, help="probability of the favoured token")
    parser.add_argument("--minutes", type=float, default=20, help="minutes after which no further schema is begun")
    parser.add_argument("--answering", nargs="+", choices=SAMPLERS, metavar="SAMPLER",
                        default=["masked", "AWRS, no mask", "AWRS, mask late", "AWRS, mask first", "exact", "distinct"],
                        help="samplers that draw answers")  # fmt: skip
    parser.add_argument("--genlm", type=Path, help="an interpreter that has genlm-control")
    parser.add_argument("--genlm-schemas", type=int, default=8, help="schemas for genlm-control")
    parser.add_argument("--genlm-seconds", type=float, default=60, help="limit of a draw of genlm-control")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
