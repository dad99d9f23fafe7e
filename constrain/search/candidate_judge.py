"""Candidates of a beam ranked by a critic as well: guided beam search (Xie et al. 2023, Khanov et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterable

from ..sampling.critics import Guide
from .hypotheses import END, Candidate, SearchSpace

__all__ = ["CandidateJudge"]


class CandidateJudge:
    """A critic, with what it said about each text.

    guide: the critic. space: whose candidates are judged.
    """

    def __init__(self, guide: Guide, space: SearchSpace) -> None:
        self.guide, self.space = guide, space
        self.known: dict[bytes, float] = {}
        self.known_prefixes: dict[bytes, float] = {}

    def judge_text(self, data: bytes) -> float:
        """Return the score of a complete text in nats."""
        if data not in self.known:
            self.known[data] = self.guide.judge_bounded(data.decode("utf-8", "replace"))
        return self.known[data]

    def judge_prefix(self, data: bytes) -> float:
        """Return the estimate for a text so far in nats."""
        if data not in self.known_prefixes:
            self.known_prefixes[data] = self.guide.judge_prefix(data.decode("utf-8", "replace"))
        return self.known_prefixes[data]

    def add_judgements(self, candidates: Iterable[Candidate]) -> None:
        """Add the judgement to the keys of admitted candidates: of the complete text for an end."""
        for one in candidates:
            one.key += self.judge_text(one.parent.text) if one.token == END else self.judge_prefix(one.text)
