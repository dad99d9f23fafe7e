"""Counts of one engine, and the comparison of masks inside it with those of a Matcher."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..mask_errors.judge import Judge

__all__ = ["EngineRefusal", "MaskCheck", "PluginEngine", "Tally", "compute_allowed"]


class EngineRefusal(Exception):
    """The engine itself refused a constraint that its plug-in compiles. The message is the engine's."""


class PluginEngine(ABC):
    """An engine with its plug-in and the embedded model. where: what of the engine runs."""

    name: str
    package: str
    where: str

    @abstractmethod
    def load(self) -> Any:
        """Load the model; return its Vocabulary as the plug-in reads it."""

    @abstractmethod
    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        """Return a text that ended within max_tokens; None if it did not end. Raise EngineRefusal if there is none."""

    @abstractmethod
    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        """Sample up to `tokens` tokens without a budget, and call `check` for each mask."""


class MaskCheck:
    """Compares masks inside an engine with those of a new Matcher after the same tokens."""

    def __init__(self, constraint: Any) -> None:
        self.constraint, self.compared, self.different = constraint, 0, 0

    def __call__(self, tokens: Sequence[int], finite: Any) -> None:
        """Count one mask. finite: bool [>= V], whether the logit of each token is finite in the engine."""
        expected = compute_allowed(self.constraint, tokens)
        given = np.asarray(finite, np.bool_)
        self.compared += 1
        size = len(expected)
        self.different += not (np.array_equal(given[:size], expected) and not given[size:].any())


def compute_allowed(constraint: Any, tokens: Sequence[int]) -> Any:
    """Return bool [V]: the mask of a new Matcher after these tokens; after an end token, the end tokens."""
    vocabulary = constraint.vocabulary
    out = np.zeros(vocabulary.size, np.bool_)
    ended = [at for at, token in enumerate(tokens) if token in vocabulary.eos_ids]
    if ended:
        out[list(vocabulary.eos_ids)] = True
        return out
    matcher = constraint.matcher()
    for token in tokens:
        matcher.advance(int(token))
    return np.unpackbits(matcher.mask().view(np.uint8), bitorder="little", count=vocabulary.size).astype(np.bool_)


class Tally:
    """Counts of one engine, with a line for each fault and for each schema that the engine refused."""

    def __init__(self) -> None:
        names = ("refused", "refused by engine", "too long", "answers", "valid", "invalid", "not judged", "not ended",
                 "failed", "masks", "masks different")  # fmt: skip
        self.counts = dict.fromkeys(names, 0)
        self.faults: list[str] = []
        self.refusals: list[str] = []

    def add_answer(self, judge: Judge | None, text: str | None) -> bool | None:
        """Count an answer; return whether it is valid, None if that is not known."""
        if text is None:
            self.counts["not ended"] += 1
            return None
        verdict = None if judge is None else judge(text)
        valid = None if verdict is None else verdict.plain if verdict.exact is None else verdict.exact
        self.counts["answers"] += 1
        self.counts["not judged" if valid is None else "valid" if valid else "invalid"] += 1
        return valid
