"""Phases of load: a number of clients send requests one after the other, constrained or free, for some seconds.

Phases alternate. Requests of a free phase have the lengths of answers under constraints, so that both do the same work.
Only tokens before the end of a phase count for its rate; answers that are complete later are awaited and judged.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

from .event_client import Answer, EventClient
from .load_cases import PATH, LoadCase, make_free_body

__all__ = ["Load", "Phase", "run_phase"]

Kind = Literal["constrained", "free"]
HANG_UPS = HOSTILE = 0.01
"""Shares of the requests under constraints that the client cancels midway, and that are hostile."""
WARM_UP = 3
"""Factor of the share of hostile requests in the warm-up. Each input is sent at least once, since the first of its kind
loads modules and fills caches."""


@dataclass
class Load:
    """What all phases share: the cases, the hostile requests, max_tokens, and the random generator.

    All hostile requests are used in random order before one is used again.
    """

    cases: Sequence[LoadCase]
    hostile: Sequence[tuple[str, bytes]]
    max_tokens: int
    rng: random.Random
    port: int
    number: int = 0
    hostile_left: list[tuple[str, bytes]] = field(default_factory=list)

    def next_hostile(self) -> tuple[str, bytes]:
        """Return the name and body of a hostile request."""
        if not self.hostile_left:
            self.hostile_left = self.rng.sample(self.hostile, len(self.hostile))
        return self.hostile_left.pop()

    def next_seed(self) -> int:
        """Return a seed that no other request has."""
        self.number += 1
        return self.number


@dataclass
class Phase:
    """The results of a phase.

    answers: (index of the case, answer) of requests that are neither hostile nor cancelled. cut: answers to cancelled
    requests. hostile: (name, answer) of each hostile request. tokens, seconds: those that count for the rate. cpu:
    seconds of CPU time of the server.
    """

    kind: Kind
    answers: list[tuple[int, Answer]] = field(default_factory=list)
    cut: list[Answer] = field(default_factory=list)
    hostile: list[tuple[str, Answer]] = field(default_factory=list)
    tokens: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0


async def run_phase(
    load: Load, kind: Kind, clients: int, seconds: float, read_cpu: Callable[[], float], hostile: float = HOSTILE
) -> Phase:
    """Run a phase and return its results.

    read_cpu: returns the seconds of CPU time of the server. hostile: the share of hostile requests.
    """
    phase, begin, used = Phase(kind), perf_counter(), read_cpu()
    until = begin + seconds
    connections = [EventClient("127.0.0.1", load.port) for _ in range(clients)]

    async def read_at_end() -> None:
        await asyncio.sleep(until - perf_counter())
        phase.cpu = read_cpu() - used

    await asyncio.gather(read_at_end(), *(run_client(load, phase, client, until, hostile) for client in connections))
    for client in connections:
        client.close()
    phase.seconds = until - begin
    phase.tokens = sum(count_before(answer, until) for answer in [*(one for _, one in phase.answers), *phase.cut])
    return phase


async def run_client(load: Load, phase: Phase, client: EventClient, until: float, hostile: float) -> None:
    """Send one request after the other until the end of the phase."""
    while perf_counter() < until:
        number = load.rng.randrange(len(load.cases))
        case, chance, seed = load.cases[number], load.rng.random(), load.next_seed()
        if phase.kind == "free":
            tokens = load.rng.choice(case.lengths) if case.lengths else load.max_tokens
            phase.answers.append((number, await client.post(PATH, make_free_body(case, tokens, seed))))
        elif chance < hostile:
            name, body = load.next_hostile()
            phase.hostile.append((name, await client.post(PATH, body)))
        elif chance < hostile + HANG_UPS:
            phase.cut.append(await client.post(PATH, case.make_body(load.max_tokens, seed), load.rng.randint(1, 12)))
        else:
            answer = await client.post(PATH, case.make_body(load.max_tokens, seed))
            phase.answers.append((number, answer))
            if answer.tokens:
                case.lengths.append(answer.tokens)


def count_before(answer: Answer, until: float) -> float:
    """Return the number of tokens of an answer before the end of a phase, in proportion to its events."""
    if not answer.times:
        return answer.tokens if answer.end <= until else 0
    tokens = answer.tokens or len(answer.times)
    return tokens * sum(time <= until for time in answer.times) / len(answer.times)
