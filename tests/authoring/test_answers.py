"""Explanations of answers: every number against its definition, and HTML that foreign text cannot leave."""

from __future__ import annotations

import copy
import json
import pickle
import re
from html.parser import HTMLParser
from math import exp
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.authoring.answers import answer_text, build_answer_page, draw_plain_text, explain_answer
from constrain.authoring.rendering.readable_tokens import escape_html, show_bytes, show_characters
from constrain.base.errors import ArgumentError
from constrain.sampling import draw
from constrain.sampling.core.masked_sampling import allowed_tokens
from tests.model_factory import TableModel

BYTES = constrain.Vocabulary.bytes()
SCHEMA = {"type": "array", "items": {"enum": [12, 13, True]}, "minItems": 1, "maxItems": 2}
HOSTILE = "<script>alert(1)</script>\u202e\u2066x\u0000\u001b[31m'\"&\u2028"


class PageReader(HTMLParser):
    """What a browser would see: tags with their attributes, and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read_html(page: str) -> PageReader:
    """Read a page, and check that it is self-contained, can be written, and has no character that is to be escaped."""
    reader = PageReader()
    reader.feed(page)
    page.encode("utf-8")
    for tag, attributes in reader.tags:
        assert tag not in ("script", "iframe", "object", "link", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src"):
                assert (value or "").startswith(("#", "data:image/svg+xml;base64,"))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\x00\x1b]", page)
    return reader


def explained(seed: int = 0, source: dict[str, Any] | None = None) -> tuple[Any, constrain.Constraint, TableModel]:
    """A masked draw of a table model and its explanation."""
    constraint = constrain.compile(BYTES, **(source or {"schema": SCHEMA}))
    model = TableModel(257, seed)
    drawn = draw(model, constraint, n=1, rng=np.random.default_rng(seed), max_tokens=60)[0]
    return explain_answer(model, constraint, drawn.tokens), constraint, drawn


@pytest.mark.parametrize("seed", range(4))
def test_every_number_has_its_definition(seed: int) -> None:
    explanation, constraint, drawn = explained(seed)
    model = TableModel(257, seed)
    assert explanation.log_mass == pytest.approx(drawn.log_weight)
    assert sum(step.logprob for step in explanation.steps) == pytest.approx(drawn.logprob)
    assert [step.token for step in explanation.steps] == [*drawn.tokens, 256]
    matcher = constraint.matcher()
    for step in explanation.steps:
        row = model.next_logprobs([list(drawn.tokens[: step.number])])[0]
        allowed = allowed_tokens(matcher.mask())
        assert step.wanted == int(row.argmax()) and step.wanted_logprob == pytest.approx(row.max())
        assert step.allowed == len(allowed) and step.mass == pytest.approx(np.exp(row[allowed]).sum())
        others = [token for token in allowed if token != step.token]
        assert (step.chosen_by == "forced") == (not others)
        assert (step.chosen_by == "mask") == (bool(others) and step.wanted not in allowed)
        if not step.is_end:
            matcher.advance(step.token)
    assert sum(explanation.counts.values()) == len(explanation.steps)
    hardest = explanation.hardest(100)
    assert [step.mass for step in hardest] == sorted(step.mass for step in hardest)


def test_forced_text_in_larger_tokens_is_forced() -> None:
    vocabulary = constrain.Vocabulary.from_tokens([b"a", b"b", b"ab", None], (3,))
    constraint = constrain.compile(vocabulary, regex="ab(a|b)")
    explanation = explain_answer(TableModel(4), constraint, [2, 0])
    assert explanation.steps[0].chosen_by == "forced"  # although `a` is allowed, too
    assert explanation.steps[0].allowed == 2
    assert explanation.steps[1].chosen_by in ("model", "mask")
    assert explanation.steps[2].is_end and explanation.steps[2].chosen_by == "forced"


def test_explanation_includes_each_refused_token() -> None:
    explanation, _, _ = explained(1)
    for number, refusal in explanation.refusals.items():
        step = explanation.steps[number]
        matcher = explanation.position(number)
        assert not matcher.allows(step.wanted) and str(refusal) in str(explanation)


def test_the_table_ends_at_a_refused_token() -> None:
    constraint = constrain.compile(BYTES, regex="abc")
    explanation = explain_answer(TableModel(257), constraint, list(b"abx"))
    assert (explanation.text, len(explanation.steps)) == ("ab", 2)
    assert "refuses token 2" in explanation.note and explanation.note in str(explanation)
    with pytest.raises(ArgumentError, match="no token 999"):
        explain_answer(TableModel(257), constraint, [999])


def test_closing_tokens_and_open_texts() -> None:
    constraint = constrain.compile(BYTES, regex="[ab]*c")
    explanation = explain_answer(TableModel(257), constraint, list(b"abc"), closing_tokens=1)
    assert explanation.steps[2].chosen_by == "closing" and "1 by the token budget" in str(explanation)
    assert not explain_answer(TableModel(257), constraint, list(b"ab"), ending="open").steps[-1].is_end


def test_rows_are_requested_as_chains_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.authoring.answers import answer_explanation

    monkeypatch.setattr(answer_explanation, "ROWS_BYTES", 8 * 257 * 4)
    model, constraint = TableModel(257), constrain.compile(BYTES, regex="a{10}")
    whole = explain_answer(model, constraint, list(b"a" * 10))
    assert model.row_counts == [4, 4, 3] and whole.rows == 11


def test_json_and_html() -> None:
    explanation, _, _ = explained(2)
    document = json.loads(explanation.to_json())
    assert [one["token"] for one in document["steps"]] == [step.token for step in explanation.steps]
    assert exp(document["log_mass"]) == pytest.approx(exp(explanation.log_mass))
    page = read_html(build_answer_page(explanation))
    assert sum(tag == "svg" for tag, _ in page.tags) == 2
    bars = [attributes for tag, attributes in page.tags if tag == "rect"]
    assert len(bars) == len(explanation.steps)
    tallest = max(step.mass for step in explanation.steps)
    assert max(float(bar["height"] or 0) for bar in bars) == pytest.approx(max(1.0, 150 * tallest), abs=0.1)
    assert "the constraint left nothing else" in page.text


def test_hostile_text_is_escaped() -> None:
    data = HOSTILE.encode()
    constraint = constrain.compile(BYTES, choices=[HOSTILE, "x"])
    explanation = explain_answer(TableModel(257), constraint, list(data))
    for html in (explanation._repr_html_(), explanation.to_html(), draw_plain_text(HOSTILE + "\ud800", HOSTILE)):
        page = read_html(html)
        assert "script>" in page.text.replace("\n", "") or "<" in page.text
    assert "\u202e" not in str(explanation) and "\x1b" not in str(explanation)


def test_incomplete_characters_and_lone_surrogates_are_shown_as_escapes() -> None:
    assert show_bytes("é".encode()[:1]) == "'\\xc3'"
    assert show_characters("a\ud800\u202e\u200b\n") == "a\\u{d800}\\u{202e}\\u{200b}\\n"
    assert escape_html("<\u2066'\">") == "&lt;\\u{2066}&#x27;&quot;&gt;"
    assert show_bytes(b"a" * 1000).endswith("(1,000 bytes)")


def test_long_answers_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.authoring.answers import answer_page

    monkeypatch.setattr(answer_text, "MOST_ROWS", 5)
    monkeypatch.setattr(answer_page, "MOST_ROWS", 5)
    constraint = constrain.compile(BYTES, regex="[ab]*")
    explanation = explain_answer(TableModel(257), constraint, list(b"ab" * 10))
    assert "The first 5 of 21 tokens are shown." in str(explanation)
    assert "and 16 more tokens" in explanation._repr_html_()
    page = read_html(explanation.to_html())
    assert sum(tag == "rect" for tag, _ in page.tags) == 5 and "The first 5 of 21" in page.text
    assert "and 980,000 more characters" in draw_plain_text("x" * 1_000_000, "")


# ---- Generation --------------------------------------------------------------------------------------------------


def generated(**options: Any) -> Any:
    return constrain.generate(TableModel(257), tokenizer=BYTES, seed=1, max_tokens=60, **options)


@pytest.mark.parametrize("sampler", ["masked", "smc", "exact"])
def test_a_generation_explains_itself(sampler: str) -> None:
    made = generated(schema={"enum": [1, 23, 4]}, sampler=sampler)
    explanation = made.explain()
    assert explanation.text == made.text
    assert sum(step.logprob for step in explanation.steps) == pytest.approx(made.logprob)
    if sampler == "masked":
        assert explanation.log_mass == pytest.approx(made.log_weight)
    assert made.explain() is explanation  # the latest one is kept
    assert made._repr_html_() == explanation._repr_html_()


def test_only_the_latest_explanation_is_kept() -> None:
    many = generated(regex="[ab]{3}", n=4)
    assert [one.explain().text for one in many] == [one.text for one in many]
    assert len(many[0].source.latest) == 1


def test_a_budget_is_named() -> None:
    made = constrain.generate(TableModel(257), tokenizer=BYTES, seed=1, max_tokens=6, regex="a*bcde")
    explanation = made.explain()
    assert explanation.text == made.text
    if made.finish_reason == "budget" and made.stats.closing_tokens:
        assert explanation.counts["closing"] + explanation.counts["forced"] >= 1


def test_temperature_and_bias_change_what_the_model_wants_as_they_did() -> None:
    made = generated(regex="[ab]", logit_bias={ord("a"): 100.0}, temperature=2.0)
    step = made.explain().steps[0]
    assert step.wanted == ord("a") and step.mass == pytest.approx(1.0)  # the bias is part of the model
    assert step.logprob + made.explain().steps[1].logprob == pytest.approx(made.logprob)


def test_a_stop_string_is_part_of_the_tokens() -> None:
    made = constrain.generate(TableModel(257), tokenizer=BYTES, seed=3, max_tokens=200, regex="[a-c]*", stop="cc")
    assert made.finish_reason in ("stop", "complete", "budget")
    assert made.explain().text.startswith(made.text)


def test_copies_have_no_source() -> None:
    made = generated(regex="[ab]")
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert other == made and other.source is None
        with pytest.raises(constrain.ConstrainError, match="not at hand"):
            other.explain()
        assert made.text in read_html(other._repr_html_()).text


def test_unconstrained_texts_are_not_explained() -> None:
    with constrain.Engine(TableModel(257), tokenizer=BYTES) as engine:
        made = engine.generate(max_tokens=3, seed=0)
        with pytest.raises(constrain.ConstrainError, match="without a constraint"):
            made.explain()
        assert "chose every token" in read_html(made._repr_html_()).text
        chosen = engine.generate(choices=["yes", "no"], seed=0)
        assert chosen.explain().text == chosen.text


def test_a_search_is_explained() -> None:
    made = generated(regex="[ab]{2}", search=constrain.BeamSearch(4))
    assert made.explain().text == made.text
    assert sum(step.logprob for step in made.explain().steps) == pytest.approx(made.logprob)


def test_the_share_of_a_step_is_readable() -> None:
    assert [answer_text.format_share(share) for share in (1.0, 0.9996, 0.5, 0.012, 6.6e-5, 0.0)] == [
        "100 %", "100 %", "50.0 %", "1.2 %", "0.0066 %", "0 %",
    ]  # fmt: skip
