"""Make a model write a given text: the forward pass is unchanged, and the logit of the next token of the text is
raised.

A document of the corpus is then generated like any other text, with and without a constraint, and with every way to
write forced text, so that the same text is compared and not the random one of a small model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["WrittenText"]

BOOST = 60.0
"""Added to the logit of the next token of the text: all others together have a probability below 1e-15."""


class WrittenText:
    """Within the block a causal model continues a prompt with a text and an end token.

    with WrittenText(loaded.model, loaded.vocabulary, len(prompt), b'{"a":1}'):
        engine.generate(prompt, ...)

    A token may be one that the tokenizer would not choose (forced runs do that at their edges): the next one is then
    the first token of the remaining text. After a token that does not belong to the text, logits are unchanged.
    """

    def __init__(self, model: Any, vocabulary: Any, start: int, data: bytes) -> None:
        self.model, self.vocabulary, self.start, self.data = model, vocabulary, start, data
        self.ends: dict[int, int | None] = {start - 1: 0}  # by position: bytes of the text after the token there
        self.following: dict[int, int] = {}  # by number of bytes: the token after them
        place = 0
        for token in vocabulary.tokenize(data):
            self.following[place] = token
            place += len(vocabulary.tokens[token])
        self.following[len(data)] = vocabulary.eos_ids[0]

    def find_next_token(self, place: int) -> int:
        """Return the token after a number of bytes of the text."""
        if place not in self.following:
            self.following[place] = self.vocabulary.tokenize(self.data[place:])[0]
        return self.following[place]

    def record_token(self, position: int, token: int) -> int | None:
        """Record the token at a position. Return the number of bytes of the text after it, or None if it differs."""
        if position < self.start:
            return 0 if position == self.start - 1 else None
        before, spelled = self.ends.get(position - 1), self.vocabulary.tokens[token] or b""
        fits = before is not None and spelled and self.data.startswith(spelled, before)
        self.ends[position] = before + len(spelled) if before is not None and fits else None
        return self.ends[position]

    def __enter__(self) -> WrittenText:
        forward = self.model.forward

        def written(*args: Any, **named: Any) -> Any:
            out = forward(*args, **named)
            positions, tokens = named["position_ids"][0].tolist(), named["input_ids"][0].tolist()
            places = [self.record_token(*pair) for pair in zip(positions, tokens)]
            kept: Any = named.get("logits_to_keep")
            columns: Sequence[int] = range(len(places)) if kept is None else kept.tolist()
            for row, column in enumerate(columns):
                place = places[column]
                if place is not None:
                    out.logits[0, row, self.find_next_token(place)] += BOOST
            return out

        self.model.forward = written
        return self

    def __exit__(self, *_: object) -> None:
        del self.model.forward
