"""One schema through one engine, mask by mask.

    along a valid text    every token that the rest of the text begins with must be in the mask, whatever tokens led
                          here, and at its end an end token
    at random             from mask to mask; in the end towards a close. Wherever an end token is in the mask the text
                          must be valid, and nowhere may the mask be empty

In every mask, no special token but the end tokens, and these only where the text may end. A wrong mask is one error,
whatever is wrong in it; the first of each kind are kept as `Finding`.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..corpus import ENDS, RANKS, Case, Llama3
from ..engines import Engine, Refused, is_allowed
from .cutting import Cutter
from .judge import Judge
from .values import Pairs, has_surrogate, parse_exactly
from .variants import Variants

__all__ = ["Finding", "Findings", "Plan", "Walker"]

KEPT = 4
"""Findings of a kind that are kept for each schema."""
LONGEST = 1_500
"""Tokens of a walk along a text: a longer text is walked so far."""
WANDER = (4, 60)
"""Tokens of a random walk before it is led to an end, least and most."""
CLOSING = 400
"""Tokens that it may take from there to the end."""
NARROW = ("constrain", "llguidance", "xgrammar")
"""Engines that have an order of keys and a spelling of their own: texts are canonical for them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a schema gets: masks, seconds of walking, and of compiling before it counts as out of time."""

    masks: int
    seconds: float
    compiling: float
    seed: int


@dataclass(frozen=True, slots=True)
class Finding:
    """kind: as counted. text: before the token. token: it, or "". rest: of the valid text, or why the text is wrong."""

    kind: str
    text: str
    token: str
    rest: str


@dataclass(slots=True)
class Findings:
    """Of one schema: counts (masks, texts, walks, and wrong masks by kind), and the first of each kind."""

    id: str
    refused: tuple[str, str] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    kept: list[Finding] = field(default_factory=list)

    def add(self, kind: str, text: bytes, token: bytes, rest: str) -> None:
        """One wrong mask."""
        self.counts[kind] += 1
        if self.counts[kind] <= KEPT:
            self.kept.append(Finding(kind, shorten_text(text), shorten_text(token), rest[:400]))


def shorten_text(text: bytes) -> str:
    """Decode bytes; those that are not UTF-8 are escaped."""
    return text.decode("utf-8", "backslashreplace")


class Walker:
    """An engine, and what the vocabulary says once for all schemas."""

    def __init__(self, name: str, engine: Engine, vocabulary: Llama3) -> None:
        self.name, self.engine = name, engine
        self.tokens = vocabulary.tokens
        self.encode = vocabulary.encode
        self.cutter = Cutter(vocabulary.tokens)
        self.narrow = name in NARROW
        marks = set(b'"{}[]:,\\')
        self.crossing = self.select_tokens(lambda token: bool(marks & set(token)))
        self.broken = self.select_tokens(lambda token: "\ufffd" in token.decode("utf-8", "replace"))
        self.short = self.select_tokens(lambda token: len(token) == 1)
        special = np.zeros_like(engine.words)
        for token in range(RANKS, len(special) * 32):
            if token not in ENDS:
                special[token >> 5] |= np.array(1 << (token & 31), np.uint32).astype(np.int32)
        self.special = special

    def select_tokens(self, wanted: Callable[[bytes], bool]) -> np.ndarray[Any, Any]:
        """Return the tokens for which `wanted` holds."""
        return np.array([number for number, token in enumerate(self.tokens) if wanted(token)])

    def __call__(self, job: tuple[Case, Plan]) -> Findings:
        """One schema: half of its masks along valid texts, half at random."""
        case, plan = job
        found = Findings(case.id)
        begin = time.monotonic()
        try:
            self.engine.compile(case.schema)
        except Refused as refusal:
            found.refused = (refusal.kind, refusal.reason[:400])
            return found
        except Exception as error:
            found.add("crash", b"", b"", f"compile: {type(error).__name__}: {error}")
            return found
        if time.monotonic() - begin > plan.compiling:
            found.add("slow to compile", b"", b"", f"{time.monotonic() - begin:.1f} s")
        judge = Judge(case.schema)
        end = time.monotonic() + plan.seconds
        source = Variants(
            case.schema, (test.text for test in case.tests if test.valid), judge,
            random.Random(f"{plan.seed} {case.id}"),
        )  # fmt: skip
        self.rng = random.Random(f"{plan.seed} {case.id} walks")
        self.found, self.judge, self.schema, self.written = found, judge, case.schema, b""
        self.free: Any = None
        try:
            while found.counts["masks"] < plan.masks // 2 and time.monotonic() < end:
                text = source.draw(narrow=self.narrow)
                if text is None and source.counts["drawn"] >= len(source.values):
                    break
                if text is not None:
                    self.walk_along(text.encode())
            while found.counts["masks"] < plan.masks and time.monotonic() < end:
                self.walk_at_random()
        except MemoryError:
            raise
        except Exception as error:
            found.add("crash", self.written, b"", f"{type(error).__name__}: {error}")
        found.counts["variants tried"] = source.counts["tried"]
        found.counts["variants kept"] = source.counts["kept"]
        found.counts["judges differ"] += source.counts["differ"]
        for text in source.differ:
            found.kept.append(Finding("judges differ", text, "", "float or pattern"))
        return found

    # ---- masks ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.engine.start()
        self.written = b""

    def mask(self) -> None:
        """The next mask, special tokens looked at."""
        self.engine.mask()
        self.found.counts["masks"] += 1
        if (self.engine.words & self.special).any():
            wrong = [
                n for n in range(RANKS, len(self.special) * 32) if n not in ENDS and is_allowed(self.engine.words, n)
            ]
            self.found.add("special token", self.written, b"", f"{len(wrong)} special tokens, {wrong[:3]}")

    def ends(self) -> bool:
        return any(is_allowed(self.engine.words, token) for token in ENDS)

    def advance(self, token: int) -> None:
        self.engine.advance(token)
        self.written += self.tokens[token]

    # ---- along a valid text ---------------------------------------------------------------------------------

    def walk_along(self, text: bytes) -> None:
        """By the tokenizer's own tokens and by two random roads."""
        candidates = [self.cutter.at(text, position) for position in range(len(text))]
        self.found.counts["texts"] += 1
        self.exempt: str | None = None
        for path in (self.encode(text.decode()), self.cutter.draw_path(text, candidates, self.rng),
                     self.cutter.draw_path(text, candidates, self.rng)):  # fmt: skip
            if not self.follow(text, candidates, path):
                return

    def follow(self, text: bytes, candidates: list[list[tuple[int, int]]], path: list[int]) -> bool:
        """One road; False if it was left."""
        self.start()
        position = 0
        for token in path[:LONGEST]:
            self.mask()
            words = self.engine.words
            missing = [number for number, _ in candidates[position] if not is_allowed(words, number)]
            if missing:
                self.over(text, position, missing[-1])
            if self.ends():
                self.check_end()
            if token in missing:
                return False
            self.advance(token)
            position += len(self.tokens[token])
        if position == len(text):
            self.mask()
            if not self.ends():
                self.over(text, position, None)
        return True

    def over(self, text: bytes, position: int, token: int | None) -> None:
        """A mask lacks a token of a valid text."""
        if self.exempt is None:
            self.exempt = self.reason(text)
        self.found.add(
            self.exempt, self.written, b"(end)" if token is None else self.tokens[token], shorten_text(text[position:])
        )

    def reason(self, text: bytes) -> str:
        """Return the kind of an error along this text: "over", or what exempts it."""
        if has_surrogate(parse_exactly(text.decode())):
            return "lone surrogate"
        if self.name == "constrain":
            from dataclasses import replace

            engine: Any = self.engine
            if self.free is None:
                self.free = engine.compile_as(self.schema, replace(engine.style, key_order="any"))
            matcher = self.free.matcher()
            try:
                matcher.advance_bytes(text)
            except engine.constrain.ConstrainError:
                return "over"
            return "key order" if matcher.is_complete else "over"
        return "over"

    # ---- at random ------------------------------------------------------------------------------------------

    def walk_at_random(self) -> None:
        """One random walk."""
        self.start()
        self.found.counts["walks"] += 1
        steps = self.rng.randint(*WANDER)
        leaving = self.rng.choice((0.1, 0.3, 0.6))
        for _ in range(steps):
            self.mask()
            if self.ends():
                self.check_end()
                if self.rng.random() < 0.2:
                    self.found.counts["finished"] += 1
                    return
            token = self.choose(leaving)
            if token is None:
                break
            self.advance(token)
        else:
            self.close()
            return
        if self.ends():
            self.found.counts["finished"] += 1
        else:
            self.found.add("stuck", self.written, b"", "no token, and no end")

    def choose(self, leaving: float) -> int | None:
        """Return a token of the mask: often one that crosses the border of a string, or that breaks a character."""
        words, chance = self.engine.words, self.rng.random()
        pool = self.crossing if chance < leaving else self.broken if chance < leaving + 0.05 else None
        if pool is None and chance < leaving + 0.25:
            pool = self.short
        if pool is not None:
            inside = pool[(words[pool >> 5] >> (pool & 31) & 1).astype(bool)]
            if len(inside):
                return int(inside[self.rng.randrange(len(inside))])
        for _ in range(20):
            token = self.rng.randrange(RANKS)
            if is_allowed(words, token):
                return token
        inside = np.flatnonzero(np.unpackbits(words[: RANKS // 32].view(np.uint8), bitorder="little"))
        return int(inside[self.rng.randrange(len(inside))]) if len(inside) else None

    def close(self) -> None:
        """Lead a walk to its end: by the engine's own completion if it has one, else by what closes most."""
        for token in self.closing():
            self.mask()
            if self.ends():
                self.check_end()
                self.found.counts["finished"] += 1
                return
            if token is None:
                self.found.add("stuck", self.written, b"", "no token, and no end")
                return
            if not is_allowed(self.engine.words, token):
                self.found.add("over", self.written, self.tokens[token], "of the engine's own completion")
                return
            self.advance(token)
        self.found.counts["unfinished"] += 1

    def closing(self) -> Iterator[int | None]:
        """Yield the tokens of a close, each asked for when its mask is there; None if there is none."""
        matcher: Any = getattr(self.engine, "matcher", None)
        if matcher is not None and hasattr(matcher, "shortest_completion"):
            rest = matcher.shortest_completion()
            if rest is None:
                self.found.add("no completion", self.written, b"", "shortest_completion knows none")
                return
            candidates = [self.cutter.at(rest, position) for position in range(len(rest))]
            yield from self.cutter.draw_path(rest, candidates, self.rng)
            yield None
            return
        for _ in range(CLOSING):
            yield self.closer()

    def closer(self) -> int | None:
        """What most likely brings an end nearer, of the mask that is not there yet: chosen anew for each mask."""
        self.engine.mask()
        words = self.engine.words
        for text in (b"}", b"]", b'"', b"0", b":", b","):
            token = self.cutter.ids[text]
            if is_allowed(words, token) and self.rng.random() < 0.9:
                return token
        return self.choose(0.5)

    def check_end(self) -> None:
        """An end token is in the mask: the text so far must be valid."""
        self.found.counts["ends"] += 1
        try:
            text = self.written.decode()
        except UnicodeDecodeError as error:
            self.found.add("under", self.written, b"", f"not UTF-8: {error}")
            return
        verdict = self.judge(text)
        if verdict.invalid:
            self.found.add("under", self.written, b"(end)", verdict.why)
        elif verdict.exact is None:
            self.found.counts["unjudged"] += 1
        elif verdict.plain is False:
            self.found.add("in doubt", self.written, b"(end)", verdict.why)
        else:
            try:
                parse_exactly(text)
            except Pairs:
                self.found.add("key twice", self.written, b"(end)", "")
