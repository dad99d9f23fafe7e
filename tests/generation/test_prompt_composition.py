"""What the model is prompted with: unchanged texts, the constraint where it is to be shown, chat templates, limits."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import constrain
from constrain import ArgumentError, ConstrainError, LimitError, PromptTemplate, UnsupportedError, Vocabulary, generate
from constrain.generation.generation_arguments import ConstraintRequest
from constrain.generation.prompt_composition import as_prompt_template, compose_prompt
from constrain.integrations.context_length import count_positions
from constrain.integrations.token_lengths import TokenLengths
from tests import tokenizer_factory
from tests.model_factory import TableModel, build_model

PLAIN: Any = SimpleNamespace(compose=None)
OWN: Any = SimpleNamespace(compose=lambda prompt, **given: f"own {prompt} {given}")
REGEX = ConstraintRequest(regex="a{2}")
TEMPLATE = PromptTemplate(regex="{prompt} <{constraint}> {{x}}")


@dataclass
class Point:
    x: int


def shown(request: ConstraintRequest, prompt: Any = "go", template: Any = TEMPLATE, **more: Any) -> Any:
    return compose_prompt(prompt, request, more.pop("loaded", PLAIN), chat=more.pop("chat", "plain"), template=template)


def test_prompts_are_used_unchanged_by_default() -> None:
    for prompt in ("go", None, [1, 2], [{"role": "user", "content": "go"}]):
        assert shown(REGEX, prompt, None) == prompt


def test_a_model_with_its_own_format_uses_it_unless_a_template_is_given() -> None:
    assert shown(REGEX, "go", None, loaded=OWN) == "own go {'regex': 'a{2}'}"
    assert shown(REGEX, "go", TEMPLATE, loaded=OWN) == "go <a{2}> {x}"
    assert shown(REGEX, [1], None, loaded=OWN) == [1]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ConstraintRequest(schema={"type": "é"}), '{"type": "é"}'),
        (ConstraintRequest(schema='{"type":"x"}'), '{"type":"x"}'),
        (ConstraintRequest(regex="a|b"), "a|b"),
        (ConstraintRequest(choices=["x", "y\n"]), '["x", "y\\n"]'),
        (ConstraintRequest(grammar='start: "a"'), 'start: "a"'),
        (ConstraintRequest(grammar="json"), constrain.grammars.text("json")),
    ],
)
def test_each_constraint_is_shown(request_: ConstraintRequest, expected: str) -> None:
    prompt = shown(request_, "go {there}", PromptTemplate())
    assert prompt.startswith("go {there}\n\nAnswer with ")
    assert prompt.endswith(":\n" + expected)
    assert shown(request_, None, as_prompt_template("{prompt}[{constraint}]")) == f"[{expected}]"


def test_types_are_shown_as_schemas_and_forms_not_at_all() -> None:
    for request in (ConstraintRequest(type=Point), ConstraintRequest(schema=Point)):
        assert json.loads(shown(request, "", as_prompt_template("{constraint}")))["required"] == ["x"]
    form = ConstraintRequest(grammar=constrain.literal("a"))
    with pytest.raises(UnsupportedError, match="has no text"):
        shown(form)
    assert shown(form, "go", as_prompt_template("{prompt}, an a")) == "go, an a"


def test_messages_show_the_constraint_in_the_last_one_of_the_user() -> None:
    messages = [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": "go"},
        {"role": "assistant", "content": "so"},
    ]  # fmt: skip
    expected = [dict(one) for one in messages]
    expected[2]["content"] = "go <a{2}> {x}"
    assert shown(REGEX, messages) == expected
    assert messages[2]["content"] == "go", "the caller's messages are not changed"
    with pytest.raises(ArgumentError, match="not of token ids"):
        shown(REGEX, [1, 2])
    with pytest.raises(ArgumentError, match="role user"):
        shown(REGEX, [{"role": "system", "content": "x"}])
    with pytest.raises(ArgumentError, match="role user"):
        shown(REGEX, [{"role": "user", "content": [{"type": "text"}]}])


def test_a_chat_template_is_applied_to_texts_when_asked() -> None:
    assert shown(REGEX, "go", None, chat="template") == [{"role": "user", "content": "go"}]
    assert shown(REGEX, None, None, chat="template") == [{"role": "user", "content": ""}]
    assert shown(REGEX, "go", TEMPLATE, chat="template") == [{"role": "user", "content": "go <a{2}> {x}"}]
    assert shown(REGEX, [1], None, chat="template") == [1]


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{other}", ArgumentError), ("{prompt!r}", ArgumentError), ("{prompt:>9}", ArgumentError), ("{", ArgumentError),
        ("{prompt.x}", ArgumentError), ("{}", ArgumentError), ("{0}", ArgumentError), ("}", ArgumentError),
        (5, TypeError), (b"x", TypeError),
    ],
)  # fmt: skip
def test_templates_have_two_fields_only(template: Any, error: type) -> None:
    with pytest.raises(error, match=r"template|show_constraint"):
        as_prompt_template(template)
    with pytest.raises(error):
        PromptTemplate(schema=template)


def test_generate_takes_them() -> None:
    pytest.importorskip("transformers")
    loaded = build_model("gpt2")
    seen: list[Any] = []
    original = loaded.tokenizer._encode_plus

    def record(text: Any, *more: Any, **named: Any) -> Any:
        seen.append(text)
        return original(text, *more, **named)

    loaded.tokenizer._encode_plus = record
    try:
        generate(loaded, "go", regex="ab", show_constraint="{prompt}: {constraint}", seed=1)
        loaded.tokenizer.chat_template = "{% for m in messages %}({{ m['role'] }}) {{ m['content'] }}{% endfor %}"
        generate(loaded, "go", regex="ab", chat="template", seed=1)
    finally:
        del loaded.tokenizer._encode_plus
        loaded.tokenizer.chat_template = None
    flat = [text[0] if isinstance(text, list) else text for text in seen]
    flat = [text for text in flat if text != "ab"]  # the forced text
    assert flat == ["go: ab", "(user) go"]
    with pytest.raises(ConstrainError, match="no chat template"):
        generate(loaded, "go", regex="ab", chat="template")
    with pytest.raises(ArgumentError, match="chat is 'auto'"):
        generate(loaded, "go", regex="ab", chat="auto")
    lm = TableModel(257)
    with pytest.raises(ConstrainError, match="holds its own prompt"):
        generate(lm, regex="a", tokenizer=Vocabulary.bytes(), show_constraint="{prompt}")


@pytest.mark.parametrize(
    ("family", "positions"), [("gpt2", 512), ("llama", 2048), ("mistral", 4096 * 32), ("t5", None)]
)
def test_prompts_beyond_the_context_are_refused_with_numbers(family: str, positions: int | None) -> None:
    """Also of rotary models; a sliding window, as of this mistral model, is no limit."""
    pytest.importorskip("transformers")
    loaded = build_model(family)
    assert count_positions(loaded.model) == positions
    if positions is not None:
        with pytest.raises(LimitError, match=rf"prompt has {positions + 1:,} tokens; {family} has {positions:,} pos"):
            generate(loaded, [5] * (positions + 1), regex="a")


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "t5"])
def test_no_text_has_fewer_tokens_than_its_length_says(family: str) -> None:
    loaded = build_model(family)
    assert loaded.count_least_tokens("x" * 1_000) > 9 or family == "t5"  # a Unigram model does not say byte_fallback
    for text in ("", "a", " " * 999, "é!" * 40, "<|turn|><|end|>[INST]" * 9, '{"name": "x"}\n' * 30, "日本語🙂" * 20):
        assert loaded.count_least_tokens(text) <= len(loaded.prompt_ids(text))


def test_no_composed_text_has_fewer_tokens_than_its_length_says() -> None:
    """As tokenizers of Qwen: NFC makes one character of up to four."""
    tokenizers = pytest.importorskip("tokenizers")
    fast = tokenizers.Tokenizer.from_str(tokenizer_factory.byte_level_bpe().to_str())
    plain = TokenLengths(tokenizer_factory.wrapped(fast, "<|end|>"), build_model("gpt2").vocabulary)
    fast.normalizer = tokenizers.normalizers.NFC()
    composing = TokenLengths(tokenizer_factory.wrapped(fast, "<|end|>"), build_model("gpt2").vocabulary)
    for text in ("a" * 500, "\u03b1\u0313\u0300\u0345" * 100, "\u212a" * 100, "\u1112\u1161\u11ab" * 50):
        assert 0 < composing.count_least(text) <= len(fast.encode(text).ids)
    assert plain.count_least("a" * 500) > composing.count_least("a" * 500)
    split, any_bytes = tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.ByteLevel()
    for change, step in (
        ("pre_tokenizer", tokenizers.pre_tokenizers.Sequence([split, any_bytes])),
        ("pre_tokenizer", tokenizers.pre_tokenizers.Punctuation()),  # unknown characters may be one token
        ("normalizer", tokenizers.normalizers.NFKC()),
    ):
        lossy = tokenizers.Tokenizer.from_str(fast.to_str())
        setattr(lossy, change, step)
        assert TokenLengths(tokenizer_factory.wrapped(lossy, "<|end|>"), build_model("gpt2").vocabulary).most == 0
    fast.add_tokens([tokenizers.AddedToken("<gap>", rstrip=True)])
    assert TokenLengths(tokenizer_factory.wrapped(fast, "<|end|>"), build_model("gpt2").vocabulary).most == 0


def test_a_text_far_beyond_the_context_is_refused_before_it_is_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = build_model("gpt2")
    longest = loaded.token_lengths.most
    with pytest.raises(LimitError, match="tokens; gpt2 has 512 positions"):
        generate(loaded, "ab" * 512, regex="a")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("tokenised")

    monkeypatch.setattr(type(loaded.tokenizer), "__call__", refuse)
    with pytest.raises(LimitError, match="which are at least 513 tokens; the model has 512 positions") as error:
        generate(loaded, "x" * (512 * longest + 1), regex="a")
    assert error.value.is_of_context


@pytest.mark.parametrize(
    ("parameters", "positions"),
    [
        (None, 100),
        ({"rope_type": "default"}, 100),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 25}, 100),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 100}, 400),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 25}, 100),
        ({"rope_type": "yarn", "factor": 4.0}, 400),
        ({"rope_type": "linear", "factor": 2.0}, 200),
        ({"type": "dynamic", "factor": 3.0}, 300),
        (
            {"full_attention": {"rope_type": "linear", "factor": 8.0}, "sliding_attention": {"rope_type": "default"}},
            800,
        ),
    ],
)
def test_scaled_rotary_embeddings_have_more_positions(parameters: Any, positions: int) -> None:
    config = SimpleNamespace(max_position_embeddings=100, rope_parameters=parameters)
    config.get_text_config = lambda decoder: config
    model = SimpleNamespace(config=config, named_modules=list)
    assert count_positions(model) == positions
    for other in (
        SimpleNamespace(**{**vars(model), "_is_stateful": True}),
        SimpleNamespace(config=SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace()), named_modules=list),
    ):
        assert count_positions(other) is None


def test_devices_and_dtypes_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from constrain.integrations import transformers_models

    assert generate("demo", "x", choices=["a", "b"], dtype="float64", device="cpu", seed=1).text in "ab"
    assert constrain.load_model("demo", dtype="float64", device="cpu").model.dtype == torch.float64
    with pytest.raises(ArgumentError, match="device= and device_map="):
        constrain.load_model("demo", device="cpu", device_map="auto")
    with pytest.raises(TypeError, match="device_map is 5"):
        constrain.load_model("demo", device_map=5)
    asked: list[Any] = []
    monkeypatch.setattr(transformers_models, "_load", lambda *given: asked.append(given))
    constrain.load_model("demo", device_map={"": 0, "lm_head": "cpu"})
    constrain.load_model("demo", device_map="auto")
    assert asked == [("demo", None, None, (("", 0), ("lm_head", "cpu"))), ("demo", None, None, "auto")]
