"""The plug-ins for vLLM: against vLLM's own classes where it is installed (`make plugins`), and against stand-ins.

A small engine moves requests about as vLLM does. Every mask must be that of a new Matcher after the same tokens.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import constrain  # noqa: E402
from constrain import UnsupportedError, VocabularyError  # noqa: E402
from constrain.demo import model_folder  # noqa: E402
from constrain.plugins.vllm_requests import CONTRADICTIONS, read_constraint_field, validate_vllm_params  # noqa: E402
from constrain.sampling.core.masked_sampling import allowed_tokens  # noqa: E402
from tests.plugins.engine_fakes import StuckMatcher, make_batches_stuck  # noqa: E402
from tests.plugins.vllm_fakes import install_vllm, make_config  # noqa: E402

VOCABULARY = constrain.Vocabulary.from_pretrained(model_folder())
SIZE, END = VOCABULARY.size, VOCABULARY.eos_ids[0]
SOURCES: list[dict[str, Any]] = [
    {"schema": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
    {"regex": "[a-c]{3,40}", "style": {"whitespace": "compact"}},
    {"choices": ["red", "green", "blue and white"]},
    {"schema": {"type": "array", "items": {"enum": [1, "x", None]}, "maxItems": 9}, "style": {"whitespace": "compact"}},
]


def compiled(source: dict[str, Any]) -> constrain.Constraint:
    return constrain.compile(VOCABULARY, **(read_constraint_field({"constrain": json.dumps(source)}) or {}))


CONSTRAINTS = [compiled(source) for source in SOURCES]


@pytest.fixture(params=["stand-ins", "installed"])
def vllm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The classes of vLLM, a config of the embedded model, and the plug-ins."""
    if request.param == "installed":
        pytest.importorskip("vllm", reason="vLLM is not installed: make plugins")
        from vllm.config import ModelConfig

        config: Any = SimpleNamespace(model_config=ModelConfig(model=str(model_folder())))
    else:
        transformers = pytest.importorskip("transformers")
        install_vllm(monkeypatch)
        config = make_config(transformers.AutoTokenizer.from_pretrained(model_folder()), SIZE, [END])
    found = SimpleNamespace(config=config)
    names = ["vllm.sampling_params", "vllm.v1.sample.logits_processor", "vllm.v1.worker.gpu.sample.logits_processor"]
    for name in (*names, "constrain.plugins.vllm_v1", "constrain.plugins.vllm_v2"):
        module = importlib.import_module(name)
        prefix = "v1_" if name.endswith("sample.logits_processor") and ".gpu." not in name else ""
        found.__dict__.update({prefix + key: value for key, value in vars(module).items() if not key.startswith("_")})
    return found


def params(vllm: Any, kind: int | None, **more: Any) -> Any:
    extra = None if kind is None else {"constrain": json.dumps(SOURCES[kind]), "somebody_elses": 1}
    return vllm.SamplingParams(**{"max_tokens": None, "extra_args": extra, **more})


def mask_after(kind: int | None, tokens: list[int]) -> np.ndarray[Any, Any]:
    """Return bool [V]: what a new Matcher allows after these tokens; only end tokens after one that it refuses."""
    if kind is None:
        return np.ones(SIZE, np.bool_)
    matcher, out = CONSTRAINTS[kind].matcher(), np.zeros(SIZE, np.bool_)
    for token in tokens:
        if not matcher.allows(token):
            out[[END]] = True
            return out
        matcher.advance(token)
    out[[END] if matcher.tokens[-1:] == [END] else allowed_tokens(matcher.mask())] = True
    return out


def finite(row: Any) -> np.ndarray[Any, Any]:
    return np.isfinite(row.numpy())


class V1Engine:
    """A batch that requests join, leave and change places in; rows are contiguous, as in vLLM's InputBatch."""

    def __init__(self, vllm: Any, rng: random.Random) -> None:
        self.vllm, self.rng = vllm, rng
        self.processor = vllm.VllmV1Processor(vllm.config, torch.device("cpu"), False)
        self.rows: list[tuple[int | None, list[int]]] = []
        self.finished: list[tuple[int | None, list[int]]] = []

    def change_batch(self) -> None:
        """Finish some requests, add one, fill the gaps from the end, perhaps swap two: as one BatchUpdate."""
        vllm, rng = self.vllm, self.rng
        moves = vllm.v1_MoveDirectionality
        gone = [row for row, (_, tokens) in enumerate(self.rows) if tokens[-1:] == [END] or rng.random() < 0.1]
        self.finished += [self.rows[row] for row in gone]
        slots: dict[int, tuple[int | None, list[int]]] = dict(enumerate(self.rows))
        removed, added, moved = list(gone), [], []
        for row in gone:
            del slots[row]
        for _ in range(rng.randint(0, 2)):
            kind = rng.choice([None, *range(len(SOURCES))])
            started = resume_tokens(kind, rng) if rng.random() < 0.3 else []  # resumed after a preemption
            row = removed.pop(0) if removed else len(slots)
            slots[row] = (kind, started)
            added.append((row, params(vllm, kind), [1, 2], started))
        for gap in sorted(removed):
            last = max(slots, default=-1)
            if last > gap:
                slots[gap] = slots.pop(last)
                moved.append((last, gap, moves.UNIDIRECTIONAL))
        if len(slots) > 1 and rng.random() < 0.5:
            one, other = rng.sample(sorted(slots), 2)
            slots[one], slots[other] = slots[other], slots[one]
            moved.append((one, other, moves.SWAP))
        self.rows = [slots[row] for row in range(len(slots))]
        if removed or added or moved:
            self.processor.update_state(vllm.v1_BatchUpdate(len(self.rows), removed, added, moved))
        else:
            self.processor.update_state(None)

    def step(self) -> None:
        logits = torch.from_numpy(np.random.default_rng(self.rng.randrange(2**32)).normal(size=(len(self.rows), SIZE)))
        out = self.processor.apply(logits.float())
        for row, (kind, tokens) in enumerate(self.rows):
            assert np.array_equal(finite(out[row]), mask_after(kind, tokens)), (kind, tokens)
            tokens.append(int(out[row].argmax()))  # the list is live


def resume_tokens(kind: int | None, rng: random.Random) -> list[int]:
    """Return some valid tokens of a text under way."""
    if kind is None:
        return [5, 6]
    matcher = CONSTRAINTS[kind].matcher()
    for _ in range(rng.randint(1, 3)):
        allowed = [token for token in allowed_tokens(matcher.mask()).tolist() if token != END]
        if allowed:
            matcher.advance(rng.choice(allowed))
    return list(matcher.tokens)


@pytest.mark.parametrize("seed", range(3))
def test_v1_masks_follow_requests_through_all_moves_of_the_batch(vllm: Any, seed: int) -> None:
    engine = V1Engine(vllm, random.Random(seed))
    for _ in range(40):
        engine.change_batch()
        engine.step()
    assert any(tokens[-1] == END for kind, tokens in engine.finished if kind is not None and tokens)


def test_v1_with_the_batch_update_builder_of_vllm(vllm: Any) -> None:
    builder_module = pytest.importorskip("vllm.v1.sample.logits_processor.state", reason="vLLM is not installed")
    builder = builder_module.BatchUpdateBuilder()
    processor = vllm.VllmV1Processor(vllm.config, torch.device("cpu"), False)
    outputs: list[list[int]] = [[], []]
    for row in range(2):
        builder.added.append((row, params(vllm, row), [1], outputs[row]))
    processor.update_state(builder.get_and_reset(2))
    builder.moved.append((0, 1, vllm.v1_MoveDirectionality.SWAP))
    processor.update_state(builder.get_and_reset(2))
    out = processor.apply(torch.zeros(2, SIZE))
    assert np.array_equal(finite(out[0]), mask_after(1, [])) and np.array_equal(finite(out[1]), mask_after(0, []))
    builder.removed_append(0)
    processor.update_state(builder.get_and_reset(1))
    assert list(processor.req_info) == [1]


class V2Engine:
    """Slots, rows in any order, drafts of which some are rejected, preemption, and prompts in chunks."""

    def __init__(self, vllm: Any, rng: random.Random, slots: int = 4) -> None:
        self.vllm, self.rng = vllm, rng
        self.tokens = torch.full((slots, 300), 7, dtype=torch.int32)  # as a recycled slot: full of old tokens
        self.prompts = np.zeros(slots, np.int32)
        state = vllm.LogitsProcRequestState(
            device=torch.device("cpu"), max_num_reqs=slots, vocab_size=SIZE,
            all_token_ids=SimpleNamespace(gpu=self.tokens), prompt_len=SimpleNamespace(np=self.prompts),
            prefill_len=None, total_len=None,
        )  # fmt: skip
        self.processor = vllm.VllmV2Processor(vllm.config, state)
        self.live: dict[int, tuple[int | None, list[int]]] = {}  # slot -> kind, committed tokens of the text
        self.waiting: list[tuple[int | None, list[int]]] = []
        self.done: list[tuple[int | None, list[int]]] = []
        self.free = list(range(slots))

    def schedule(self) -> None:
        rng = self.rng
        for slot, (_, text) in list(self.live.items()):
            if text[-1:] == [END] or len(text) > 60:
                self.done.append(self.live.pop(slot))
                self.free.append(slot)
            elif rng.random() < 0.1:  # preempted: the text is kept, the slot is not
                self.waiting.append(self.live.pop(slot))
                self.free.append(slot)
        while self.free:
            kind, text = (
                self.waiting.pop() if self.waiting and rng.random() < 0.7 else (rng.choice([None, *range(4)]), [])
            )
            slot = self.free.pop(rng.randrange(len(self.free)))
            self.prompts[slot] = rng.randint(1, 20)
            assert self.processor.add_request(slot, params(self.vllm, kind)) is (kind is not None)
            self.live[slot] = (kind, text)
            self.commit(slot, text, 0)
        self.processor.apply_staged_writes()

    def commit(self, slot: int, text: list[int], start: int) -> None:
        first = int(self.prompts[slot])
        self.tokens[slot, first + start : first + len(text)] = torch.tensor(text[start:], dtype=torch.int32)

    def step(self) -> None:
        rng, rows = self.rng, []
        drafts: dict[int, list[int]] = {}
        chunked = set()
        for slot, (kind, text) in self.live.items():
            if rng.random() < 0.15 and self.prompts[slot] > 2:  # a chunk of a prompt that is not complete
                chunked.add(slot)
                rows.append((slot, 0, 9, int(self.prompts[slot]) - 2))
                continue
            drafts[slot] = self.draft(kind, text)
            position = int(self.prompts[slot]) + len(text) - 1
            fed = [text[-1] if text else 9, *drafts[slot]]
            rows += [(slot, local, token, position + local) for local, token in enumerate(fed)]
        groups = [[row for row in rows if row[0] == slot] for slot in self.live]
        rng.shuffle(groups)
        rows = [row for group in groups for row in group]
        slots = [group[0][0] for group in groups]
        columns = [torch.tensor([row[at] for row in rows]) for at in range(4)]
        context = self.vllm.LogitsContext(
            expanded_idx_mapping=columns[0].int(), idx_mapping=torch.tensor(slots), idx_mapping_np=np.array(slots),
            expanded_local_pos=columns[1].int(), input_ids=columns[2].int(), pos=columns[3],
            seq_lens_upper_bound_np=np.zeros(len(slots)),
        )  # fmt: skip
        noise = np.random.default_rng(rng.randrange(2**32)).normal(size=(len(rows), SIZE)).astype(np.float32)
        out = self.processor.apply(torch.from_numpy(noise), context)
        self.check_rows(rows, out, drafts, chunked)

    def check_rows(self, rows: list[Any], out: Any, drafts: dict[int, list[int]], chunked: set[int]) -> None:
        accepted: dict[int, list[int]] = {slot: [] for slot in drafts}
        for number, (slot, local, _, _) in enumerate(rows):
            kind, text = self.live[slot]
            if slot in chunked:
                assert finite(out[number]).all()
                continue
            expected = mask_after(kind, [*text, *drafts[slot][:local]])
            assert np.array_equal(finite(out[number]), expected), (kind, text, drafts[slot], local)
            if len(accepted[slot]) == local and accepted[slot] == drafts[slot][:local]:
                sampled = drafts[slot][local] if local < len(drafts[slot]) and self.rng.random() < 0.7 else None
                agrees = sampled is not None and expected[sampled]
                accepted[slot].append(sampled if agrees else int(out[number].argmax()))
        for slot, tokens in accepted.items():
            kind, text = self.live[slot]
            if END in tokens:
                tokens = tokens[: tokens.index(END) + 1]
            start = len(text)
            text += tokens
            self.commit(slot, text, start)

    def draft(self, kind: int | None, text: list[int]) -> list[int]:
        """Return draft tokens, valid ones and others; none for half of the requests."""
        if self.rng.random() < 0.5:
            return []
        out: list[int] = []
        for _ in range(self.rng.randint(1, 3)):
            allowed = np.flatnonzero(mask_after(kind, [*text, *out])).tolist()
            out.append(self.rng.choice(allowed) if self.rng.random() < 0.8 else self.rng.choice([-1, 77, END]))
        return out


@pytest.mark.parametrize("seed", range(3))
def test_v2_rows_are_positions_of_texts_not_requests(vllm: Any, seed: int) -> None:
    engine = V2Engine(vllm, random.Random(seed))
    for _ in range(40):
        engine.schedule()
        engine.step()
    assert any(text[-1] == END for kind, text in engine.done if kind is not None and text)


def test_v2_leaves_batches_without_constraints_alone(vllm: Any) -> None:
    engine = V2Engine(vllm, random.Random(0))
    engine.processor.add_request(0, params(vllm, 0))
    engine.processor.add_request(0, params(vllm, None))  # recycled
    logits = torch.zeros(1, SIZE)
    context = SimpleNamespace(idx_mapping_np=np.array([0]))
    assert engine.processor.apply(logits, context) is logits and not engine.processor.slots


@pytest.mark.parametrize("name", ["VllmV1Processor", "VllmV2Processor"])
def test_texts_are_complete_within_max_tokens(vllm: Any, name: str) -> None:
    for kind in range(len(SOURCES)):
        request = make_processor(vllm, name).requests.open_request(params(vllm, kind, max_tokens=24))
        assert request is not None and request.error is None
        rng = random.Random(kind)
        while not request.has_ended:
            request.follow([*request.tokens, rng.choice(allowed_tokens(request.mask()).tolist())])
        assert request.error is None and len(request.tokens) <= 24


def make_processor(vllm: Any, name: str) -> Any:
    if name == "VllmV1Processor":
        return vllm.VllmV1Processor(vllm.config, torch.device("cpu"), False)
    return V2Engine(vllm, random.Random(0)).processor


@pytest.mark.parametrize("name", ["VllmV1Processor", "VllmV2Processor"])
def test_request_errors_in_the_worker_give_an_empty_text(
    vllm: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception there would end the engine for all requests; an unconstrained text is worse."""
    processor = make_processor(vllm, name)
    text = VOCABULARY.fewest(b"}")[0]
    refused = [
        params(vllm, 0, max_tokens=2, extra_args={"constrain": '{"regex": "a{40}"}'}),
        params(vllm, 0, extra_args={"constrain": '{"schema": {"type": 5}}'}),
        params(vllm, 0, extra_args={"constrain": "{"}),
        params(vllm, 0, stop_token_ids=[text]),
    ]
    for one in refused:
        request = processor.requests.open_request(one)
        assert allowed_tokens(request.mask()).tolist() == [END]
    assert caplog.text.count("answered with an empty text") == len(refused)
    assert processor.requests.open_request(params(vllm, 0, stop_token_ids=[END])).error is None


@pytest.mark.parametrize("name", ["VllmV1Processor", "VllmV2Processor"])
def test_a_dead_row_ends_its_text_alone_and_is_logged_once(
    vllm: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_batches_stuck(monkeypatch)
    step, requests = start_batch(vllm, name)
    requests[1].matcher = StuckMatcher()
    for _ in range(2):
        out = step()
        assert np.array_equal(finite(out[0]), mask_after(0, []))
        assert np.flatnonzero(finite(out[1])).tolist() == [END]
    assert caplog.text.count("cut short: a search gave up") == 1


def start_batch(vllm: Any, name: str) -> tuple[Any, list[Any]]:
    """Return a function that masks the first rows of two requests, and their positions."""
    processor = make_processor(vllm, name)
    both = [params(vllm, 0), params(vllm, 1)]
    if name == "VllmV1Processor":
        processor.update_state(vllm.v1_BatchUpdate(2, [], [(row, one, [1], []) for row, one in enumerate(both)], []))
        positions = [processor.req_info[row].func.request for row in range(2)]
        return lambda: processor.apply(torch.zeros(2, SIZE)), positions
    for slot, one in enumerate(both):
        processor.add_request(slot, one)
        processor.req_states.prompt_len.np[slot] = 1
    slots, zeros = torch.tensor([0, 1]), torch.zeros(2, dtype=torch.int64)
    context = vllm.LogitsContext(
        expanded_idx_mapping=slots, idx_mapping=slots, idx_mapping_np=slots.numpy(), expanded_local_pos=zeros,
        input_ids=zeros, pos=zeros, seq_lens_upper_bound_np=np.ones(2),
    )  # fmt: skip
    return lambda: processor.apply(torch.zeros(2, SIZE), context), [processor.slots[slot].request for slot in range(2)]


@pytest.mark.parametrize(
    ("extra", "cause"),
    [
        ({"constrain": "{"}, "not JSON"),
        ({"constrain": "5"}, "constrain is 5"),
        ({"constrain": '{"schema": {}, "regex": "a"}'}, "schema and regex given"),
        ({"constrain": "{}"}, "no constraint given"),
        ({"constrain": '{"json": {}}'}, "at /constrain/json"),
        ({"constrain": '{"regex": "a", "style": {"spaces": 1}}'}, "at /constrain/style/spaces"),
        ({"constrain": '{"regex": "a", "style": {"digits": "x"}}'}, "at /constrain/style"),
        ({"constrain": '{"regex": "a", "style": 5}'}, "style is 5"),
        ({"constrain_schema": "{}"}, "unknown extra argument 'constrain_schema'"),
        ({"constrain": '{"schema": {"type": "objekt"}}'}, "objekt"),
        ({"constrain": '{"regex": "("}'}, "constrain"),
        ({"constrain": '{"regex": 5}'}, "constrain"),
        ({"constrain": '{"schema": {"type": "object", "minProperties": 3, "maxProperties": 2}}'}, "constrain"),
    ],
)
def test_a_refused_constraint_is_an_error_of_the_front_end(vllm: Any, extra: dict[str, Any], cause: str) -> None:
    for name in ("VllmV1Processor", "VllmV2Processor"):
        with pytest.raises(ValueError, match=cause):
            getattr(vllm, name).validate_params(params(vllm, None, extra_args=extra))


def test_contradictions_are_errors_of_the_front_end(vllm: Any) -> None:
    more: dict[str, Any] = {"stop": ["x"], "bad_words": ["x"], "allowed_token_ids": [5], "min_tokens": 3,
                            "trace_decode_token_ids": [5]}  # fmt: skip
    for name in CONTRADICTIONS:
        value = more.get(name, True)
        for kind, is_refused in ((0, True), (None, False)):
            one = params(vllm, kind, max_tokens=5)
            setattr(one, name, value)
            if is_refused:
                with pytest.raises(ValueError, match=f"{name} cannot be combined"):
                    validate_vllm_params(one)
            else:
                validate_vllm_params(one)
    validate_vllm_params(params(vllm, 0))


def test_the_loaders_of_vllm_take_each_class_for_its_runner_only() -> None:
    v1 = pytest.importorskip("vllm.v1.sample.logits_processor", reason="vLLM is not installed: make plugins")
    v2 = pytest.importorskip("vllm.v1.worker.gpu.sample.logits_processor.loader", reason="vLLM is not installed")
    first, second = "constrain.plugins.vllm_v1:VllmV1Processor", "constrain.plugins.vllm_v2:VllmV2Processor"
    assert [one.__name__ for one in v1._load_logitsprocs_by_fqcns([first])] == ["VllmV1Processor"]
    assert [one.__name__ for one in v2._load_v2_logitsprocs_by_fqcns([second])] == ["VllmV2Processor"]
    with pytest.raises(ValueError, match="must be a subclass"):
        v1._load_logitsprocs_by_fqcns([second])
    with pytest.raises(ValueError, match="is not a subclass"):
        v2._load_v2_logitsprocs_by_fqcns([first])
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams

    validate = v2.build_custom_logits_processors_params_validator([second])
    with pytest.raises(VLLMValidationError, match="objekt"):
        validate(SamplingParams(extra_args={"constrain": '{"schema": {"type": "objekt"}}'}))


def test_nothing_is_registered_as_an_entry_point() -> None:
    """One of the wrong generation stops the server when it starts, so the user names the right one."""
    from importlib.metadata import entry_points

    assert not [one for one in entry_points(group="vllm.logits_processors") if one.value.startswith("constrain")]


def test_other_versions_are_refused_when_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    install_vllm(monkeypatch, "0.34.0")
    for name in ("constrain.plugins.vllm_v1", "constrain.plugins.vllm_v2"):
        with pytest.raises(UnsupportedError, match=r"vllm 0\.34\.0 has not been tested"):
            importlib.import_module(name)
        assert name not in sys.modules


def test_a_server_without_a_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install_vllm(monkeypatch)
    module = importlib.import_module("constrain.plugins.vllm_v1")
    with pytest.raises(VocabularyError, match="without a tokenizer"):
        module.VllmV1Processor(make_config(None, SIZE, [END]), torch.device("cpu"), False)
