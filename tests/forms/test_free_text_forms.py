"""Free text and what begins in it: against a slow reading of every short text, and against the model left alone."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
import pytest

import constrain
from constrain import (
    Form,
    SourceError,
    TokenRefused,
    UnsupportedError,
    Vocabulary,
    gbnf,
    json_schema,
    literal,
    regex,
    thinking,
    triggered,
)
from constrain.forms.free_text_forms import unconstrained
from constrain.sampling.core.masked_sampling import Proposal, pick_token
from tests.text_acceptance import accepts_text

BYTES = Vocabulary.bytes()
SPECIAL = {"<think>": 257, "</think>": 258, "<|tool|>": 259}
TOKENS: list[bytes | None] = [bytes((value,)) for value in range(256)]
SPECIALS = Vocabulary.from_tokens(
    [*TOKENS, None, None, None, None, b"<call", b"\xe2\x82", b'all>{"', b"x<call>1", None], (256,), special=SPECIAL
)


def allowed(matcher: constrain.Matcher) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")).tolist())


def accepts(form: Form, text: bytes, vocabulary: Vocabulary = BYTES) -> bool:
    return accepts_text(form.compile(vocabulary), text)


# ---- by the slow reading


def slow(text: str, forms: dict[str, set[str]], least: int, most: int | None, after: str) -> bool:
    """Return whether a text is free text with a form after each trigger that is completed first."""

    @lru_cache(None)
    def reads(at: int, count: int) -> bool:
        for end in range(at + 1, len(text) + 1):
            now = [trigger for trigger in forms if text[at:end].endswith(trigger)]
            if now:
                if most is not None and count >= most:
                    return False
                rest = [end + len(body) for trigger in now for body in forms[trigger] if text.startswith(body, end)]
                return any(behind(place, count + 1) for place in rest)
        return count >= least and (after == "text" or count == 0)

    def behind(at: int, count: int) -> bool:
        return (after == "end" and at == len(text) and count >= least) or reads(at, count)

    return reads(0, 0)


@pytest.mark.parametrize(
    ("forms", "least", "most", "after"),
    [
        ({"aa": {"b"}}, 0, None, "text"),
        ({"ab": {"", "a"}, "bba": {"b"}}, 0, None, "text"),
        ({"aba": {"a", "bb"}, "ba": {"b"}}, 1, None, "text"),
        ({"ab": {"a"}, "b": {"ab"}}, 0, 1, "end"),
        ({"ab": {"b", "ba"}}, 1, 2, "end"),
        ({"a": {"ba"}}, 0, 0, "text"),
        ({"ab": {"a"}}, 2, None, "end"),
    ],
)
def test_every_short_text(forms: dict[str, set[str]], least: int, most: int | None, after: str) -> None:
    def either(texts: set[str]) -> Form:
        return regex("|".join(sorted(texts)))

    form = triggered({t: either(b) for t, b in forms.items()}, least=least, most=most, after=after)  # type: ignore[arg-type]
    constraint = form.compile(BYTES)
    for length in range(9):
        for letters in product("ab", repeat=length):
            text = "".join(letters)
            matcher, found = constraint.matcher(), True
            try:
                matcher.advance_bytes(text.encode())
                found = matcher.is_complete
            except TokenRefused:
                found = False
            assert found == slow(text, forms, least, most, after), text


def test_before_a_trigger_everything_is_allowed() -> None:
    call = json_schema({"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False})
    matcher = triggered({"<call>": call}).compile(SPECIALS).matcher()
    everything = set(range(264)) - {255}  # 0xFF is in no text, 264 is padding
    assert allowed(matcher) == everything - {263}  # what begins a call goes on as one
    for token in (0xE2, 258, 0xC0, 261, ord("<"), 0x80, 257):  # no UTF-8, and special tokens
        matcher.advance(token)
        assert allowed(matcher) == everything - {263}
    for token in (*b"<c", 262):
        matcher.advance(token)
    assert allowed(matcher) == {ord("x")} and not matcher.is_complete


def test_a_special_token_is_a_trigger() -> None:
    matcher = triggered({"<|tool|>": "yes", "<call>": "no"}).compile(SPECIALS).matcher()
    matcher.advance_bytes(b"<|tool|> is no tool here, <cal")
    assert {256, 257, 259, ord("l")} <= allowed(matcher)
    matcher.advance(259)
    assert matcher.forced() == b"yes"
    matcher.advance_bytes(b"yes <call>")
    assert matcher.forced() == b"no"


def test_a_trigger_may_contain_special_tokens() -> None:
    """Until such a trigger is complete, its tokens are free; as text, the same letters are no trigger."""
    matcher = triggered({"<|tool|>\n": "yes", "a<|tool|>": "no"}).compile(SPECIALS).matcher()
    for token in (*b"<|tool|>\n", 259, *b"b", 259):
        matcher.advance(token)
    matcher.advance_bytes(b"\n")
    assert matcher.forced() == b"yes"
    matcher.advance_bytes(b"yesa")
    matcher.advance(259)
    assert matcher.forced() == b"no"


def test_a_special_token_whose_name_contains_a_trigger_is_refused() -> None:
    matcher = triggered({"<|to": "yes", "x": "no"}).compile(SPECIALS).matcher()
    assert not matcher.allows(259) and matcher.allows(257)
    matcher.advance_bytes(b"<|to")
    assert matcher.forced() == b"yes"


def test_special_tokens_break_a_text() -> None:
    """A text with a token in its midst is not the trigger."""
    matcher = triggered({"<call>": "no"}).compile(SPECIALS).matcher()
    for token in (*b"<ca", 257, *b"ll>"):
        matcher.advance(token)
    assert matcher.is_complete


# ---- by the model


@pytest.fixture(scope="module")
def loaded() -> object:
    pytest.importorskip("transformers")
    from constrain import load_model

    return load_model("demo")


def alone(lm: object, vocabulary: Vocabulary, seed: int, proposal: Proposal, most: int) -> list[int]:
    """What the model writes with no constraint, no mask and no engine: every id of its vocabulary may come."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    tokens: list[int] = []
    everything = np.arange(vocabulary.size)
    while len(tokens) < most:
        row = lm.next_logprobs([tokens])[0]  # type: ignore[attr-defined]
        token = pick_token(row, everything, rng, proposal, vocabulary.eos_ids).token
        if token in vocabulary.eos_ids:
            break
        tokens.append(token)
    return tokens


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_text_before_a_trigger_is_what_the_model_writes(loaded: object, temperature: float) -> None:
    vocabulary = loaded.vocabulary  # type: ignore[attr-defined]
    proposal, triggers = Proposal(temperature), 0
    for seed in range(4 if temperature else 2):
        prompt = ["Describe a person.", "Write about a house."][seed % 2]
        free = alone(loaded.on(loaded.compose(prompt)), vocabulary, seed, proposal, 24)  # type: ignore[attr-defined]
        text = vocabulary.decode(free)
        middle = text[len(text) // 2 : len(text) // 2 + 4]
        for trigger in (middle, "never, ever"):
            if not trigger.isascii() or not trigger:
                continue
            out = constrain.generate(
                loaded,
                prompt,
                grammar=triggered({trigger: " [" + regex("[0-9]{3}") + "]"}, most=1, after="end"),
                seed=seed,
                temperature=temperature,
                max_tokens=40,
            )
            place = text.find(trigger)
            triggers += place >= 0
            end = len(text[: place + len(trigger)].encode()) if place >= 0 else len(text.encode()) + 1
            ends = [len(vocabulary.text(free[: k + 1])) for k in range(len(free))]
            before = sum(one < end for one in ends)  # tokens that end before the trigger does
            assert list(out.tokens[:before]) == free[:before]
    assert triggers > 1


def test_rejection_where_most_tokens_are_allowed_keeps_the_masked_distribution() -> None:
    rng, size, n = np.random.default_rng(0), 130, 40_000
    row = np.log(rng.dirichlet(np.ones(size)))
    row[5] = np.log(0.3)  # of what is refused
    row -= np.logaddexp.reduce(row)
    allowed_ids = np.setdiff1d(np.arange(size), [5, 9])
    counts = np.bincount([pick_token(row, allowed_ids, rng).token for _ in range(n)], minlength=size)
    law = np.where(np.isin(np.arange(size), allowed_ids), np.exp(row), 0)
    expected = n * law / law.sum()
    often = expected > 5
    assert counts[5] == counts[9] == 0
    assert ((counts - expected)[often] ** 2 / expected[often]).sum() / often.sum() < 1.5


def test_a_budget_closes_what_a_trigger_began(loaded: object) -> None:
    form = triggered({"e": regex("[0-9]{5}")}, least=1)
    out = constrain.generate(loaded, "Describe a house.", grammar=form, max_tokens=8, seed=0)
    assert len(out.tokens) < 8 and accepts(form, out.text.encode())


# ---- thoughts


def test_thoughts_are_free_and_then_the_form_comes() -> None:
    form = thinking(regex("yes|no"))
    matcher = form.compile(SPECIALS).matcher()
    assert allowed(matcher) == {257}
    matcher.advance(257)
    assert 256 not in allowed(matcher) and {258, 259, 0xC0} <= allowed(matcher)
    matcher.advance_bytes(b"</think> as text is thought")
    matcher.advance(258)
    assert allowed(matcher) == {ord("y"), ord("n")}
    assert accepts(form, b"<think>hm</think>no") and not accepts(form, b"no") and not accepts(form, b"<think>hm no")
    assert accepts(thinking("a", thought="maybe"), b"a") and accepts(thinking("a", open=""), b"hm</think>a")


@pytest.mark.parametrize(("close", "vocabulary"), [("</think>", BYTES), ("</think>", SPECIALS), ("..", BYTES)])
def test_thoughts_are_bounded(close: str, vocabulary: Vocabulary) -> None:
    form = thinking("!", open="", close=close, most=5)
    constraint = form.compile(vocabulary)
    end = vocabulary.names.get(vocabulary.special.get(close, -1), close.encode())
    for length in range(8):
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(b"<" * length + end + b"!")
            assert length <= 5 and matcher.is_complete
        except TokenRefused:
            assert length > 5
    matcher = constraint.matcher()
    matcher.advance_bytes(b"12345")
    assert matcher.next_bytes() == {end[0]}


def test_thoughts_end_in_time(loaded: object) -> None:
    form = thinking(json_schema({"type": "boolean"}))
    out = constrain.generate(loaded, "Is it so?", grammar=form, max_tokens=30, seed=2)
    assert out.text.startswith("<think>") and out.text.split("</think>")[1] in ("true", "false")


# ---- what is refused


def test_errors() -> None:
    with pytest.raises(SourceError, match="can never occur, because it contains the trigger 'ab'"):
        triggered({"ab": "c", "abc": "d"})
    with pytest.raises(SourceError, match="no triggers"):
        triggered({})
    with pytest.raises(SourceError, match="given twice"):
        triggered([("a", "b"), ("a", "c")])
    with pytest.raises(SourceError, match="a trigger is ''"):
        triggered({"": "b"})
    with pytest.raises(ValueError, match="least <= most"):
        triggered({"a": "b"}, least=2, most=1)
    with pytest.raises(ValueError, match="'text', 'end'"):
        triggered({"a": "b"}, after="nothing")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="cannot be optional"):
        thinking("a", open="", thought="maybe")
    with pytest.raises(ValueError, match="whole number"):
        thinking("a", most=-1)
    with pytest.raises(UnsupportedError, match="ends a text"):
        ender = Vocabulary.from_tokens([*TOKENS, None], (256,), special={"<end>": 256})
        ("a" + unconstrained(until="<end>")).compile(ender)
    with pytest.raises(UnsupportedError, match="unrestricted and special tokens"):
        (triggered({"a": "b"}) & gbnf('root ::= "a" "b"')).grammar()


def test_a_form_without_a_text_is_not_begun() -> None:
    assert accepts(triggered({"a": json_schema(False), "b": "c"}), b"xbc") and not accepts(
        triggered({"a": json_schema(False), "b": "c"}), b"a"
    )
    assert accepts(triggered({"a": json_schema(False)}), b"b") and not accepts(
        triggered({"a": json_schema(False)}), b"a"
    )
    with pytest.raises(constrain.UnsatisfiableError):
        triggered({"a": json_schema(False)}, least=1).grammar()


def test_triggered_forms_combine() -> None:
    form = "# " + triggered({"$": regex("[0-9]+") + "$"}) + "\n" + literal("end")
    assert accepts(form, b"# costs $12$ or \xff"[:-1] + b"\nend")
