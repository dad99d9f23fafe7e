"""Token healing: what is taken back, against a search over all tokens; healed texts, against the exact distribution."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.decoding.generation_loop import finish_runs, generate_text
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.outcomes import Piece
from constrain.decoding.prompt_healing import count_open_tokens, heal_prompt, prepend_bytes, retokenize_border
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from constrain.decoding.token_choice import TokenChoice
from constrain.vocabulary.vocabulary import Vocabulary
from tests import tokenizer_factory
from tests.markov_factory import ChainModel, outcomes
from tests.model_factory import TableModel

SMALL = Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", b"bc", b"abc", b"cab", None, None], [7], special={"<s>": 8})


def open_by_search(vocabulary: Vocabulary, tokens: list[int]) -> int:
    """The definition, over all tokens."""
    found = 0
    for count in range(1, len(tokens) + 1):
        if not vocabulary.tokens[tokens[-count]]:
            break
        suffix = vocabulary.text(tokens[len(tokens) - count :])
        if any(token and token.startswith(suffix) and len(token) > len(suffix) for token in vocabulary.tokens):
            found = count
    return found


@given(st.lists(st.integers(0, 8).filter(lambda token: token != 7), max_size=6))
def test_open_tokens_are_those_of_the_definition(tokens: list[int]) -> None:
    assert count_open_tokens(SMALL, tokens) == open_by_search(SMALL, tokens)


@pytest.mark.parametrize("kind", sorted(tokenizer_factory.MADE))
def test_prompts_of_real_tokenizers(kind: str) -> None:
    make, end = tokenizer_factory.MADE[kind]
    vocabulary = Vocabulary.from_tokenizer(tokenizer_factory.wrapped(make(), end))
    for text in tokenizer_factory.texts(40, seed=3):
        ids = vocabulary.encode(text)  # type: ignore[misc]
        healed = heal_prompt(vocabulary, ids)
        assert vocabulary.text(healed.kept) + healed.prefix == vocabulary.text(ids)
        healed.prefix.decode()
        assert len(ids) - len(healed.kept) >= open_by_search(vocabulary, ids)
        assert heal_prompt(vocabulary, ids, least=len(ids)).prefix == b""


def test_healing_stops_at_special_tokens_and_at_characters() -> None:
    assert heal_prompt(SMALL, [3, 8, 0]).kept == (3, 8)
    assert heal_prompt(SMALL, [3, 8]).kept == (3, 8)
    split = Vocabulary.from_tokens([b"\xc3", b"\xa9", b"\xa9x", b"e", None], [4])
    assert heal_prompt(split, [3, 0, 1]).prefix == "é".encode()


@pytest.mark.parametrize("kind", sorted(tokenizer_factory.MADE))
def test_borders_are_those_of_the_tokenizer(kind: str) -> None:
    make, end = tokenizer_factory.MADE[kind]
    vocabulary = Vocabulary.from_tokenizer(tokenizer_factory.wrapped(make(), end))
    same = total = 0
    for text in tokenizer_factory.texts(40, seed=4):
        ids = vocabulary.tokenize(text.encode())
        for cut in range(1, len(text), 5):
            before = vocabulary.tokenize(text[:cut].encode())
            back, appended = retokenize_border(vocabulary, before, text[cut:].encode())
            joined = [*before[: len(before) - back], *appended]
            assert vocabulary.text(joined) == text.encode()
            assert back <= 1 or text[cut - 1] > "\x7f"
            same, total = same + (joined == ids), total + 1
            back, appended = retokenize_border(vocabulary, before, text[cut:].encode(), len(before))
            assert [*before[: len(before) - back], *appended] == ids
    assert same / total > 0.4  # one token cannot always restore the tokens of the whole text


def healed_law(lm: ChainModel, kept: list[int], prefix: bytes, texts: list[bytes], longest: int) -> dict[bytes, float]:
    """p(x | kept) summed over all token strings x, end included, whose bytes are the prefix and one of the texts."""
    law = dict.fromkeys(texts, 0.0)
    rows, ordinary = np.exp(lm.logs), [i for i, token in enumerate(SMALL.tokens) if token]
    for length in range(longest + 1):
        for tokens in product(ordinary, repeat=length):
            data = SMALL.text(tokens)
            if data.startswith(prefix) and data[len(prefix) :] in law:
                p = float(rows[lm.context([*kept, *tokens]), 7])
                for i, token in enumerate(tokens):
                    p *= float(rows[lm.context([*kept, *tokens[:i]]), token])
                law[data[len(prefix) :]] += p
    return law


class After:
    """A model after given tokens."""

    def __init__(self, lm: ChainModel, tokens: list[int]) -> None:
        self.lm, self.tokens = lm, tokens

    def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
        return self.lm.next_logprobs([[*self.tokens, *prefix] for prefix in prefixes])


@pytest.mark.parametrize(("prompt", "prefix"), [([2, 0], b"ca"), ([2, 2, 3], b"ab"), ([8, 1], b"b"), ([1, 5], b"")])
def test_healed_texts_follow_the_model_given_the_bytes_of_the_prompt(prompt: list[int], prefix: bytes) -> None:
    """Every random choice is played through: E[weight, text] is the exact probability."""
    texts = [b"b", b"bc", b"ca", b"cb", b"abc"]
    lm = ChainModel.random(SMALL, 1, seed=5)
    healed = heal_prompt(SMALL, prompt)
    assert healed.prefix == prefix
    constraint = prepend_bytes(constrain.compile(SMALL, choices=[text.decode() for text in texts]), prefix, SMALL)
    assert constraint is not None

    def run(script):  # type: ignore[no-untyped-def]
        return generate_text(After(lm, list(healed.kept)), constraint, rng=script, max_tokens=8)

    found = dict.fromkeys(texts, 0.0)
    for probability, out in outcomes(run):
        assert out.finish_reason == "complete"
        assert out.data.startswith(prefix)
        found[out.data[len(prefix) :]] += probability * math.exp(out.log_weight)
    law = healed_law(lm, list(healed.kept), prefix, texts, len(prefix) + 3)
    for text in texts:
        assert found[text] == pytest.approx(law[text], rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_a_prefix_without_a_constraint(seed: int) -> None:
    assert prepend_bytes(None, b"", SMALL) is None
    constraint = prepend_bytes(None, b"ab", SMALL)
    assert constraint is not None
    lm = ChainModel.random(SMALL, 1, seed=seed)
    out = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=30)
    assert out.data.startswith(b"ab")


def test_a_request_with_a_prefix_streams_and_returns_the_text_after_it() -> None:
    """Neither the prefix nor a stop string within it is part of the text."""
    vocabulary = Vocabulary.bytes()
    constraint = prepend_bytes(constrain.compile(vocabulary, regex="[a-dé]{4,12}"), b"bc", vocabulary)
    for seed in range(30):
        for stop in ((), ("bc",), ("d", "aa")):
            pieces: list[Piece] = []
            request = GenerationRequest(
                vocabulary,
                [np.random.default_rng(seed)],
                constraint=constraint,
                choice=TokenChoice(stop=stop),
                listener=lambda _, piece: pieces.append(piece),  # noqa: B023
                prefix=b"bc",
            )
            scheduler = Scheduler(LanguageModelRunner(lambda _: TableModel(257, seed), 257))  # noqa: B023
            run = scheduler.submit(request)
            finish_runs(scheduler, [run])
            (out,) = run.outcomes
            assert out is not None
            whole = vocabulary.text(out.tokens)[2:]
            assert "".join(piece.text for piece in pieces).encode() == out.data
            assert out.skipped == 2
            if out.stop is None:
                assert out.data == whole
            else:
                assert whole.startswith(out.data + out.stop.encode())
                assert len(out.data.decode()) >= 4
