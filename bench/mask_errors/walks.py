"""Check one schema with one engine, mask by mask.

    along a valid text    every token with which the text continues must be in the mask, after any tokenisation of the
                          prefix, and an end token at the end of the text
    at random             from mask to mask, in the end by tokens that complete the text. The text must be valid
    wherever
                          an end token is in the mask, and no mask may be empty

No mask may contain special tokens other than end tokens. A wrong mask counts as one error; the first of each kind are
stored as `Finding`.
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
from .values import DuplicateKey, has_surrogate, parse_exactly
from .variants import Variants

__all__ = ["Finding", "Findings", "Plan", "Walker"]

KEPT = 4
"""Maximum number of findings of a kind that are stored for each schema."""
LONGEST = 1_500
"""Maximum number of tokens of a walk along a text."""
WANDER = (4, 60)
"""Minimum and maximum number of tokens of a random walk before it is completed."""
CLOSING = 400
"""Maximum number of tokens that complete a random walk."""
NARROW = ("constrain", "llguidance", "xgrammar")
"""Engines that fix the order of keys and the spelling: their texts are canonical."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The budget of a schema. masks: number of masks. seconds: of walks. compiling: maximum seconds to compile it."""

    masks: int
    seconds: float
    compiling: float
    seed: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A wrong mask. text: before the token. token: "" if none is concerned. rest: of the valid text, or the error."""

    kind: str
    text: str
    token: str
    rest: str


@dataclass(slots=True)
class Findings:
    """The outcome of one schema. counts: masks, texts, walks, and wrong masks by kind. kept: the first of each kind."""

    id: str
    refused: tuple[str, str] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    kept: list[Finding] = field(default_factory=list)

    def add(self, kind: str, text: bytes, token: bytes, rest: str) -> None:
        """Count a wrong mask."""
        self.counts[kind] += 1
        if self.counts[kind] <= KEPT:
            self.kept.append(Finding(kind, decode_text(text), decode_text(token), rest[:400]))


def decode_text(text: bytes) -> str:
    """Decode bytes as UTF-8, with invalid ones escaped."""
    return text.decode("utf-8", "backslashreplace")


class Walker:
    """Checks schemas with one engine; what depends on the vocabulary alone is computed once."""

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
        """Check one schema: half of its masks along valid texts, half on random walks."""
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
                    self.walk_text(text.encode())
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
        """Make the next mask and check its special tokens."""
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

    def walk_text(self, text: bytes) -> None:
        """Walk along a text by the tokenizer's own tokens and by two random tokenisations."""
        candidates = [self.cutter.list_tokens(text, position) for position in range(len(text))]
        self.found.counts["texts"] += 1
        self.exempt: str | None = None
        for path in (self.encode(text.decode()), self.cutter.draw_path(text, candidates, self.rng),
                     self.cutter.draw_path(text, candidates, self.rng)):  # fmt: skip
            if not self.walk_tokens(text, candidates, path):
                return

    def walk_tokens(self, text: bytes, candidates: list[list[tuple[int, int]]], path: list[int]) -> bool:
        """Walk along one tokenisation. Return False if the mask does not allow one of its tokens."""
        self.start()
        position = 0
        for token in path[:LONGEST]:
            self.mask()
            words = self.engine.words
            missing = [number for number, _ in candidates[position] if not is_allowed(words, number)]
            if missing:
                self.add_missing_token(text, position, missing[-1])
            if self.ends():
                self.check_end()
            if token in missing:
                return False
            self.advance(token)
            position += len(self.tokens[token])
        if position == len(text):
            self.mask()
            if not self.ends():
                self.add_missing_token(text, position, None)
        return True

    def add_missing_token(self, text: bytes, position: int, token: int | None) -> None:
        """Count a mask that lacks a token of a valid text (None: an end token)."""
        if self.exempt is None:
            self.exempt = self.classify_error(text)
        self.found.add(
            self.exempt, self.written, b"(end)" if token is None else self.tokens[token], decode_text(text[position:])
        )

    def classify_error(self, text: bytes) -> str:
        """Return the kind of an error along this text: "over", or a kind that is not an error of the engine."""
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
        """Walk at random from mask to mask, then complete the text."""
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
            token = self.choose_token(leaving)
            if token is None:
                break
            self.advance(token)
        else:
            self.complete_text()
            return
        if self.ends():
            self.found.counts["finished"] += 1
        else:
            self.found.add("stuck", self.written, b"", "no token, and no end")

    def choose_token(self, leaving: float) -> int | None:
        """Return a random token of the mask: often one that crosses the border of a string or splits a character."""
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

    def complete_text(self) -> None:
        """Complete the text of a walk: by the engine's own completion if it has one, else by closing tokens."""
        for token in self.list_closing_tokens():
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

    def list_closing_tokens(self) -> Iterator[int | None]:
        """Yield tokens that complete the text, each after the mask before it was made; None if there is none."""
        matcher: Any = getattr(self.engine, "matcher", None)
        if matcher is not None and hasattr(matcher, "shortest_completion"):
            rest = matcher.shortest_completion()
            if rest is None:
                self.found.add("no completion", self.written, b"", "shortest_completion finds none")
                return
            candidates = [self.cutter.list_tokens(rest, position) for position in range(len(rest))]
            yield from self.cutter.draw_path(rest, candidates, self.rng)
            yield None
            return
        for _ in range(CLOSING):
            yield self.choose_closing_token()

    def choose_closing_token(self) -> int | None:
        """Make the mask and return the token of it that most likely brings the end nearer."""
        self.engine.mask()
        words = self.engine.words
        for text in (b"}", b"]", b'"', b"0", b":", b","):
            token = self.cutter.ids[text]
            if is_allowed(words, token) and self.rng.random() < 0.9:
                return token
        return self.choose_token(0.5)

    def check_end(self) -> None:
        """Check that the text is valid, as an end token is in the mask."""
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
            except DuplicateKey:
                self.found.add("key twice", self.written, b"(end)", "")
