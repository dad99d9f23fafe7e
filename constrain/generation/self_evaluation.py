"""A model's judgement of its own text, as a critic (self-evaluation guided decoding, Xie et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .option_probabilities import choose

__all__ = ["SelfEvaluation"]


LEAST = -50.0
"""Least judgement, in nats: those of texts so far have to be finite."""


class SelfEvaluation:
    """A critic that asks a model whether a text is right: ``weight`` times the log-probability of the right answer.

    Parameters
    ----------
    model : object
        As for `choose`: a name, a `LoadedModel`, or a loaded transformers model.
    question : str or callable
        A template with the field {text}, or a function that makes the prompt of a text.
    answers : tuple of str
        The texts that say that it is right, and that it is not.
    weight : float
        Factor of the log-probability.

    Use it as ``Guide(evaluation, evaluation)``: scores are at most 0, and judgements are kept by text.
    """

    def __init__(
        self,
        model: Any,
        question: str | Callable[[str], str] = "Is this right? Answer Yes or No.\n{text}\nAnswer: ",
        *,
        answers: tuple[str, str] = ("Yes", "No"),
        weight: float = 1.0,
    ) -> None:
        self.model, self.question, self.answers, self.weight = model, question, answers, weight
        self.known: dict[str, float] = {}

    def __call__(self, text: str) -> float:
        if text not in self.known:
            made = self.question(text) if callable(self.question) else self.question.replace("{text}", text)
            self.known[text] = self.weight * self.measure(made)
        return self.known[text]

    def measure(self, prompt: str) -> float:
        """Return the log of the share of the first answer after a prompt, in nats, at least LEAST."""
        found = choose(self.model, prompt, self.answers, ends="prefix")
        return max(found.log_probabilities[self.answers[0]], LEAST)
