"""Does `constrain serve` hold under load: 64 clients, 200 schemas, some clients that hang up, some hostile inputs?

    python -m bench serve --seconds 300 --clients 64 --schemas 200

A server with the embedded model runs in a process of its own, the clients in this one, so both share the machine.
Phases with and without constraints alternate, with texts of equal lengths. Of the requests under constraints, 1 % are
cancelled by their client midway and 1 % are inputs of `bench hostile`, each of which was sent at least once in the
warm-up. All other answers are judged by jsonschema. The exit code is 1 if a request failed, an answer is invalid, or
the server answered 5xx. The targets for rate and memory are printed with the figures.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import print_rows
from .load_cases import LoadCase, choose_load_cases, list_hostile_bodies
from .load_phases import HOSTILE, WARM_UP, Load, Phase, run_phase
from .server_child import ServerChild, find_slope

CANDIDATES = 6
"""Cases drawn for each schema of the load, as some do not fit."""
RATIO, SLOPE = 0.9, 1.0
"""Targets: tokens per second relative to those without constraints, and MiB of memory per minute."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load. Return the exit code."""
    parser = build_parser("serve", __doc__, "data", "seed", "seconds", "results", seconds=300.0)
    parser.add_argument("--clients", type=int, default=64, help="concurrent clients")
    parser.add_argument("--schemas", type=int, default=200, help="different schemas")
    parser.add_argument("--tokens", type=int, default=64, help="max_tokens")
    parser.add_argument("--phase", type=float, default=15.0, help="seconds of a phase")
    parser.add_argument("--warm-up", type=float, default=240.0, help="seconds before anything is measured")
    parser.add_argument("--slots", type=int, default=64, help="texts that the server generates at the same time")
    options = parser.parse_args(arguments)
    options.sample = options.schemas * CANDIDATES
    cases = choose_load_cases(read_cases(options), options.schemas, options.tokens)
    print(f"{len(cases)} schemas whose shortest answer has at most {options.tokens} tokens")
    with ServerChild(["--slots", str(options.slots)]) as server:
        load = Load(cases, list_hostile_bodies(16), options.tokens, random.Random(options.seed), server.port)
        phases, memory, cpu = asyncio.run(run_load(load, server, options))
    rows, failures = summarise_phases(phases, cases)
    print_rows("answers", rows)
    speeds = compare_rates(phases)
    print_rows("tokens per second and delays in ms", speeds)
    slope = find_slope(memory)
    facts = {
        "ratio": speeds[0]["tokens/s"] / speeds[1]["tokens/s"], "slope MiB/min": slope,
        "first MiB": memory[0][1], "last MiB": memory[-1][1], **cpu, "exit code": server.exit_code,
        "hostile inputs in the warm-up": len({name for name, _ in phases[0].hostile}),
        "hostile inputs": len(load.hostile),
        "hostile": Counter(answer.status for phase in phases for _, answer in phase.hostile),
    }  # fmt: skip
    print_facts(facts)
    for line in failures[:20]:
        print("failed:", line)
    write_result(options, {"answers": rows, "speeds": speeds, "facts": facts, "failures": failures, "memory": memory})
    return 1 if failures or server.exit_code else 0


async def run_load(load: Load, server: ServerChild, options: Any) -> tuple[list[Phase], list[Any], dict[str, float]]:
    """Run the warm-up and the phases; return them, the memory (second, MiB) after the warm-up, and CPU seconds."""
    share = WARM_UP * HOSTILE
    phases = [await run_phase(load, "constrained", options.clients, options.warm_up, server.read_cpu, share)]
    memory = list[Any]()
    begin, used = perf_counter(), server.read_cpu()
    sampler = asyncio.create_task(sample_memory(server, begin, memory))
    while perf_counter() < begin + options.seconds:
        for kind in ("constrained", "free"):
            phases.append(await run_phase(load, kind, options.clients, options.phase, server.read_cpu))
            print_phase(phases[-1], memory)
    sampler.cancel()
    elapsed = perf_counter() - begin
    return phases, memory, {"seconds": elapsed, "CPU seconds of the server": server.read_cpu() - used}


async def sample_memory(server: ServerChild, begin: float, memory: list[Any]) -> None:
    """Record the memory of the server each second."""
    while True:
        memory.append((perf_counter() - begin, server.read_memory()))
        await asyncio.sleep(1)


def print_phase(phase: Phase, memory: Sequence[tuple[float, float]]) -> None:
    """Print a line while the load runs."""
    rate, cost = phase.tokens / phase.seconds, 1e3 * phase.cpu / max(phase.tokens, 1)
    size = f", {memory[-1][1]:,.0f} MiB" if memory else ""
    print(
        f"{phase.kind:12} {len(phase.answers):5} answers {rate:8,.0f} tokens/s, {cost:.3f} CPU s/1,000{size}",
        flush=True,
    )


def summarise_phases(phases: Sequence[Phase], cases: Sequence[LoadCase]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the counts of each kind of request, and a line for each failure."""
    failures: list[str] = []
    rows = []
    for kind in ("constrained", "free"):
        answers = [pair for phase in phases if phase.kind == kind for pair in phase.answers]
        invalid = 0
        for number, answer in answers:
            if answer.status != 200 or answer.error or not answer.finish:
                failures.append(f"{kind}: status {answer.status}, {answer.error or answer.text[:200]}")
            elif kind == "constrained" and cases[number].judge(answer.text).exact is not True:
                invalid += 1
                failures.append(f"invalid, {cases[number].case.id}: {answer.text[:200]}")
        rows.append({
            "requests": kind, "answers": len(answers), "schemas": len({number for number, _ in answers}),
            "failed": sum(answer.status != 200 or bool(answer.error) for _, answer in answers), "invalid": invalid,
        })  # fmt: skip
    cut = [answer for phase in phases for answer in phase.cut]
    failures += [f"before it was given up: {one.status} {one.error}" for one in cut if one.error]
    rows.append(make_row("given up midway", cut, sum(bool(one.error) for one in cut)))
    hostile = [pair for phase in phases for pair in phase.hostile]
    wrong = [(name, one) for name, one in hostile if one.error or not 200 <= one.status < 500]
    failures += [f"hostile input {name}: {one.status} {one.error or one.text[:200]}" for name, one in wrong]
    rows.append(make_row("hostile", [one for _, one in hostile], len(wrong)))
    return rows, failures


def make_row(name: str, answers: Sequence[Any], failed: int) -> dict[str, Any]:
    """Return a row of answers that are not judged."""
    return {"requests": name, "answers": len(answers), "schemas": None, "failed": failed, "invalid": None}


def compare_rates(phases: Sequence[Phase]) -> list[dict[str, Any]]:
    """Return tokens per second and percentiles of delays, under constraints and without; without the warm-up."""
    rows = []
    for kind in ("constrained", "free"):
        chosen = [phase for phase in phases[1:] if phase.kind == kind]
        answers = [answer for phase in chosen for _, answer in phase.answers if answer.times]
        first = [answer.times[0] - answer.begin for answer in answers]
        between = np.concatenate([np.diff(answer.times) for answer in answers] or [np.zeros(1)])
        rates, tokens = [phase.tokens / phase.seconds for phase in chosen], sum(phase.tokens for phase in chosen)
        rows.append({
            "requests": kind, "tokens/s": tokens / sum(one.seconds for one in chosen),
            "slowest phase": min(rates), "CPU s/1,000": 1e3 * sum(one.cpu for one in chosen) / tokens,
            "tokens a text": float(np.mean([answer.tokens for answer in answers])),
            **{f"first p{q}": 1e3 * float(np.percentile(first, q)) for q in (50, 99)},
            **{f"between p{q}": 1e3 * float(np.percentile(between, q)) for q in (50, 99)},
        })  # fmt: skip
    return rows


def print_facts(facts: dict[str, Any]) -> None:
    """Print the figures that have targets, and the others."""
    print(f"constrained over free: {facts['ratio']:.1%} of the tokens per second (goal: at least {RATIO:.0%})")
    print(
        f"memory of the server: {facts['first MiB']:,.0f} MiB after the warm-up, {facts['last MiB']:,.0f} at the end,"
    )
    print(f"  slope {facts['slope MiB/min']:+.2f} MiB/min (goal: at most {SLOPE:g})")
    print(f"CPU of the server: {facts['CPU seconds of the server']:.0f} s in {facts['seconds']:.0f} s")
    print(f"hostile inputs in the warm-up: {facts['hostile inputs in the warm-up']} of {facts['hostile inputs']}")
    print(f"hostile inputs by status: {dict(facts['hostile'])}; exit code of the server: {facts['exit code']}")


if __name__ == "__main__":
    sys.exit(main())
