"""The plug-in for SGLang: with SGLang's own classes where it is installed (`make plugins`), and with stand-ins."""

from __future__ import annotations

import importlib
import json
import random
import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import constrain  # noqa: E402
from constrain import UnsupportedError  # noqa: E402
from constrain.demo import model_folder  # noqa: E402
from constrain.sampling.core.masked_sampling import allowed_tokens  # noqa: E402
from tests.plugins.engine_fakes import StuckMatcher, make_batches_stuck  # noqa: E402
from tests.plugins.sglang_fakes import HOOKS, install_sglang  # noqa: E402

VOCABULARY = constrain.Vocabulary.from_pretrained(model_folder())
SIZE, END = VOCABULARY.size, VOCABULARY.eos_ids[0]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]}
TAG = {
    "structures": [{"begin": "<call>", "schema": SCHEMA, "end": "</call>"}],
    "triggers": ["<call>"],
}
SOURCES = {
    ("json", json.dumps(SCHEMA)): {"schema": SCHEMA},
    ("json", "$$ANY$$"): {"schema": {"type": "object"}},
    ("regex", "[a-c]{3,9}"): {"regex": "[a-c]{3,9}"},
    ("ebnf", 'root ::= "a" root | "b"'): {"grammar": 'root ::= "a" root | "b"'},
}


@pytest.fixture(params=["stand-ins", "installed"])
def sglang(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The classes of SGLang and the plug-in, with a backend for the embedded model."""
    if request.param == "installed":
        pytest.importorskip("sglang.srt.constrained", reason="SGLang is not installed: make plugins")
    else:
        install_sglang(monkeypatch)
    base = importlib.import_module("sglang.srt.constrained.base_grammar_backend")
    plugin = importlib.import_module("constrain.plugins.sglang_backend")
    return SimpleNamespace(base=base, plugin=plugin, backend=plugin.SglangBackend(VOCABULARY))


def grammar_of(sglang: Any, key: tuple[str, str]) -> Any:
    return sglang.backend._init_value_dispatch(key, False)


def row_of(grammar: Any, batched: bool = False, base: Any = None) -> Any:
    mask = grammar.allocate_vocab_mask(vocab_size=SIZE, batch_size=3, device="cpu")
    assert (mask == -1).all()
    if batched:
        grammar.fill_vocab_mask_batched([base.GrammarRow(row=1, grammar=grammar)], mask)
    else:
        grammar.fill_vocab_mask(mask, 1)
    assert (mask[0] == -1).all() and (mask[2] == -1).all(), "other rows stay"
    return mask[1].numpy()


@pytest.mark.parametrize("key", sorted(SOURCES))
def test_masks_are_those_of_a_matcher_with_drafts_taken_back(sglang: Any, key: tuple[str, str]) -> None:
    constraint = constrain.compile(VOCABULARY, **SOURCES[key])
    grammar, rng = grammar_of(sglang, key), random.Random(1)
    matcher = constraint.matcher()
    for step in range(60):
        ended = matcher.tokens[-1:] == [END]
        assert grammar.is_terminated() is ended
        if ended or rng.random() < 0.2:
            count = rng.randint(0, len(matcher.tokens)) if not ended else rng.randint(1, len(matcher.tokens))
            matcher.rollback(count)
            grammar.rollback(count)
        expected = matcher.mask()
        assert np.array_equal(row_of(grammar, step % 2 == 0, sglang.base), expected)
        token = rng.choice(allowed_tokens(expected).tolist())
        matcher.advance(token)
        grammar.accept_token(token)
    assert grammar.copy().accepted == [] and not grammar.copy().is_terminated()


def test_structural_tags(sglang: Any) -> None:
    grammar = grammar_of(sglang, ("structural_tag", json.dumps(TAG)))
    matcher = constrain.compile(VOCABULARY, grammar=sglang.plugin.structural_tag(TAG)).matcher()
    for token in VOCABULARY.tokenize(b'free text <call>{"b": '):
        assert np.array_equal(row_of(grammar), matcher.mask())
        matcher.advance(token)
        grammar.accept_token(token)


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (("json", '{"type": "objekt"}'), "objekt"),
        (("json", "{"), "JSON"),
        (("json", '{"type": "object", "minProperties": 2, "maxProperties": 1}'), "minProperties"),
        (("regex", "("), "("),
        (("ebnf", 'root ::= "a" missing'), "missing"),
        (("structural_tag", "[]"), "object"),
        (("structural_tag", '{"type": "structural_tag"}'), "format"),
    ],
)
def test_refused_grammars_are_invalid_grammar_objects_with_a_message(
    sglang: Any, key: tuple[str, str], cause: str
) -> None:
    grammar = grammar_of(sglang, key)
    assert isinstance(grammar, sglang.base.InvalidGrammarObject)
    assert cause in grammar.error_message


NUL = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[^\0]*$"}}, "required": ["a"]}


@pytest.mark.parametrize("key", [("json", json.dumps(NUL)), ("regex", "[^\0]+"), ("ebnf", 'root ::= "\0"')])
def test_a_nul_is_refused_by_sglang_before_it_asks_the_backend(sglang: Any, key: tuple[str, str]) -> None:
    grammar = grammar_of(sglang, key)
    assert isinstance(grammar, sglang.base.InvalidGrammarObject) and "NUL bytes" in grammar.error_message
    asked = getattr(sglang.backend, f"dispatch_{key[0]}")(key[1])
    assert isinstance(asked, sglang.plugin.SglangGrammar), "the backend would have compiled it"


def test_a_refused_token_aborts_the_request(sglang: Any) -> None:
    grammar = grammar_of(sglang, ("regex", "[a-c]{3,9}"))
    before = row_of(grammar).copy()
    with pytest.raises(ValueError, match="is refused by the constraint"):
        grammar.accept_token(VOCABULARY.fewest(b"}")[0])
    grammar.rollback(0)
    assert np.array_equal(row_of(grammar), before)


def test_a_row_without_tokens_ends_and_aborts(sglang: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = grammar_of(sglang, ("regex", "[a-c]{3,9}"))

    make_batches_stuck(monkeypatch)
    grammar.request.matcher = StuckMatcher()
    assert allowed_tokens(row_of(grammar)).tolist() == [END]
    with pytest.raises(ValueError, match="a search gave up"):
        grammar.accept_token(END)


def test_tokens_after_the_end_are_taken_back_one_by_one(sglang: Any) -> None:
    grammar = grammar_of(sglang, ("regex", "a"))
    for token in (*VOCABULARY.fewest(b"a"), END, 77):
        grammar.accept_token(token)
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert grammar.is_terminated()
    grammar.rollback(1)
    assert not grammar.is_terminated() and allowed_tokens(row_of(grammar)).tolist() == [END]


def test_jump_forward(sglang: Any) -> None:
    schema = {"type": "object", "properties": {"long_name": {"const": "é"}}, "required": ["long_name"],
              "additionalProperties": False}  # fmt: skip
    backend = sglang.plugin.SglangBackend(VOCABULARY, constrain.Style(whitespace="compact"))
    grammar = backend.dispatch_json(json.dumps(schema))
    helper = grammar.try_jump_forward(None)
    assert helper == ([], '{"long_name":"é"}')
    text, state = grammar.jump_forward_str_state(helper)
    old = VOCABULARY.tokenize(b'{"')
    for token in old:
        grammar.accept_token(token)
    new = VOCABULARY.tokenize(text.encode())
    grammar.jump_and_retokenize(old, new, state)
    assert grammar.accepted == new and allowed_tokens(row_of(grammar)).tolist() == [END]
    assert grammar.try_jump_forward(None) is None
    with pytest.raises(ValueError, match="refused"):
        grammar.jump_and_retokenize(new, VOCABULARY.tokenize(b"[]"), -1)
    assert grammar_of(sglang, ("regex", "[a-c]{3}")).try_jump_forward(None) is None


def test_masks_are_applied_to_logits(sglang: Any) -> None:
    grammar = grammar_of(sglang, ("regex", "[a-c]{3,9}"))
    mask = grammar.allocate_vocab_mask(SIZE, 2, "cpu")
    grammar.fill_vocab_mask(mask, 1)
    logits = torch.zeros(2, SIZE)
    grammar.apply_vocab_mask(logits=logits, vocab_mask=grammar.move_vocab_mask(mask, "cpu"))
    assert torch.isfinite(logits[0]).all()
    assert torch.isfinite(logits[1]).nonzero().flatten().tolist() == allowed_tokens(mask[1].numpy()).tolist()
    grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()


def test_the_cache_of_sglang_copies_grammars(sglang: Any) -> None:
    if not hasattr(sglang.backend, "get_cached_or_future_value"):
        pytest.skip("SGLang is not installed")
    key = ("json", json.dumps(SCHEMA))
    value, hit = sglang.backend.get_cached_or_future_value(key, False)
    assert isinstance(value, Future) and not hit
    grammar = value.result()
    assert grammar.grammar_stats.compilation_time > 0
    sglang.backend.set_cache(key, grammar.copy())
    grammar.accept_token(VOCABULARY.fewest(b"{")[0])
    copied, hit = sglang.backend.get_cached_or_future_value(key, False)
    assert hit and copied.accepted == [] and copied.constraint is grammar.constraint


class StandInRequest:
    """What the hooks and the GrammarManager read and write of a request of SGLang."""

    def __init__(self, max_new_tokens: int | None, schema: Any = SCHEMA) -> None:
        self.sampling_params = SimpleNamespace(
            max_new_tokens=max_new_tokens, json_schema=json.dumps(schema), regex=None, ebnf=None, structural_tag=None,
            custom_params=None,
        )  # fmt: skip
        self.origin_input_ids, self.require_reasoning, self.grammar_wait_ct = [1], False, 0
        self.grammar: Any = None
        self.aborted = ""

    def set_finish_with_abort(self, message: str) -> None:
        self.aborted, self.grammar = message, None

    def finished(self) -> bool:
        return False


@pytest.mark.parametrize("seed", range(3))
def test_a_text_is_complete_within_max_new_tokens(sglang: Any, seed: int) -> None:
    rng, request = random.Random(seed), StandInRequest(30)
    request.grammar = grammar_of(sglang, ("json", json.dumps(SCHEMA)))
    sglang.plugin.limit_ready_requests([request], None)
    tokens: list[int] = []
    while tokens[-1:] != [END]:
        tokens.append(rng.choice(allowed_tokens(row_of(request.grammar)).tolist()))
        request.grammar.accept_token(tokens[-1])
    assert len(tokens) <= 30 and isinstance(json.loads(VOCABULARY.decode(tokens[:-1]))["b"], int)


def test_a_request_whose_limit_is_below_the_shortest_text_is_aborted(sglang: Any) -> None:
    request = StandInRequest(2)
    request.grammar = grammar_of(sglang, ("json", json.dumps(SCHEMA)))
    sglang.plugin.limit_new_request(False, None, request)
    assert "the shortest text found takes" in request.aborted


def test_grammars_that_are_not_ready_or_not_ours_are_not_limited(sglang: Any) -> None:
    for grammar in (None, Future(), sglang.base.InvalidGrammarObject("no")):
        request = StandInRequest(2)
        request.grammar = grammar
        sglang.plugin.limit_new_request(True, None, request)
        assert request.grammar is grammar and not request.aborted


def test_hooks_limit_the_requests_of_the_grammar_manager(sglang: Any) -> None:
    """Compiled in a thread, and from the cache, as SGLang's scheduler asks for them."""
    sglang.plugin.register_sglang_backend()
    if not hasattr(sglang.backend, "get_cached_or_future_value"):
        names = {target.rpartition(".")[2] for target, _, kind in HOOKS if kind == "after"}
        assert names == {"process_req_with_grammar", "get_ready_grammar_requests"}
        return
    manager = make_manager(sglang)
    first = StandInRequest(30)
    assert manager.process_req_with_grammar(first)
    assert manager.get_ready_grammar_requests() == [first]
    later, small = StandInRequest(25), StandInRequest(2)
    assert not manager.process_req_with_grammar(later) and not manager.process_req_with_grammar(small)
    assert (first.grammar.request.budget.max_tokens, later.grammar.request.budget.max_tokens) == (30, 25)
    assert "the shortest text found takes" in small.aborted


def make_manager(sglang: Any) -> Any:
    """Return a GrammarManager of SGLang with the backend, its plug-in's hooks applied, and no scheduler."""
    from sglang.srt.constrained.grammar_manager import GrammarManager
    from sglang.srt.plugins.hook_registry import HookRegistry

    HookRegistry.apply_hooks()
    manager = object.__new__(GrammarManager)
    vars(manager).update(
        grammar_backend=sglang.backend, grammar_queue=[], _enable_strict_thinking=False, pp_rank=0, pp_size=1,
        pp_group=None, grammar_sync_size=1, SGLANG_GRAMMAR_POLL_INTERVAL=60, SGLANG_GRAMMAR_MAX_POLL_ITERATIONS=10,
    )  # fmt: skip
    return manager


@pytest.mark.parametrize(
    ("schema", "cause"), [(NUL, "NUL bytes"), ({"type": "objekt"}, "objekt")], ids=["by SGLang", "by constrain"]
)
def test_a_refused_schema_ends_its_request_and_is_never_unconstrained(sglang: Any, schema: Any, cause: str) -> None:
    """Compiled in a thread, then from the cache."""
    sglang.plugin.register_sglang_backend()
    if not hasattr(sglang.backend, "get_cached_or_future_value"):
        pytest.skip("SGLang is not installed")
    manager = make_manager(sglang)
    first, second = StandInRequest(30, schema), StandInRequest(30, schema)
    assert manager.process_req_with_grammar(first) and manager.get_ready_grammar_requests() == [first]
    assert not manager.process_req_with_grammar(second)
    for request in (first, second):
        assert cause in request.aborted and request.grammar is None


def test_the_flag_is_registered_and_makes_a_backend(sglang: Any) -> None:
    transformers = pytest.importorskip("transformers")
    sglang.plugin.register_sglang_backend()
    make = sglang.base.GRAMMAR_BACKEND_REGISTRY["constrain"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder())
    args = SimpleNamespace(constrained_json_disable_any_whitespace=True, reasoning_parser=None)
    for ends in (END, {END}, None):
        backend = make(args, tokenizer, SIZE, ends)
        assert backend.vocabulary == VOCABULARY and backend.style.whitespace == "compact"
    for name in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
        with pytest.raises(UnsupportedError, match=name.replace("_", "-")):
            make(SimpleNamespace(**{name: "x"}), tokenizer, SIZE, END)


def test_the_entry_point_is_declared() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'constrain = "constrain.plugins.sglang_backend:register_sglang_backend"' in text


def test_other_versions_are_refused_when_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    install_sglang(monkeypatch, "0.6.0")
    with pytest.raises(UnsupportedError, match=r"sglang 0\.6\.0 has not been tested"):
        importlib.import_module("constrain.plugins.sglang_backend")
    assert "constrain.plugins.sglang_backend" not in sys.modules
