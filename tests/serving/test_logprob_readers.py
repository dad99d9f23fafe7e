"""Log-probabilities that nobody wants cost a request nothing; those of thoughts are not those of the answer."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI

from constrain import Vocabulary
from constrain.serving.answer_call import AnswerCall
from constrain.serving.thought_tokens import ContentLogprobs
from constrain.serving.token_logprobs import MOST_ROWS, LogprobReader, TokenLogprob


def test_only_wanted_logprobs_wait_for_a_thread(served: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads may all be compiling."""
    service, hops, hop = served.state.service, list[Any](), asyncio.to_thread

    async def count(function: Any, *given: Any) -> Any:
        hops.append(function)
        return await hop(function, *given)

    monkeypatch.setattr(asyncio, "to_thread", count)

    async def read(top: int | None) -> list[Any] | None:
        found: list[Any] | None = await service.read_logprobs(AnswerCall([5, 6], top_logprobs=top), [7, 8])
        return found

    assert asyncio.run(read(None)) is None
    assert not hops
    found = asyncio.run(read(1))
    assert found is not None
    assert len(found) == 2
    assert hops


def test_few_rows_are_in_memory_at_a_time() -> None:
    """One for each token of a long answer, each as long as the vocabulary, would be gigabytes."""
    asked: list[list[list[int]]] = []

    class Model:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            asked.append(prefixes)
            return np.log(np.full((len(prefixes), 3), 1 / 3))

    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    reader, tokens = LogprobReader(Model(), vocabulary, 1), [0, 1, 1] * MOST_ROWS
    found = [*reader.read(tokens[:5]), *reader.read(tokens[5:])]
    assert b"".join(one.data for one in found) == b"abb" * MOST_ROWS
    assert max(map(len, asked)) == MOST_ROWS
    assert [prefix for part in asked for prefix in part] == [tokens[:number] for number in range(len(tokens))]


def test_tokens_of_thoughts_are_left_out_once_it_is_known_where_they_end() -> None:
    """The text of the thoughts is x, a byte that is no UTF-8, é in two tokens, and >: four characters."""
    pieces = [b"x\xff", b"\xc3", b"\xa9>", b"4", b"2"]
    first, *others = [TokenLogprob(piece, -1.0) for piece in pieces]
    content = ContentLogprobs()
    assert content.feed([first], None) == []
    assert content.feed(others[:3], 4) == others[2:3]
    assert content.feed(others[3:], 4) == others[3:]
    assert ContentLogprobs().feed([first], 0) == [first]
