"""Stand-ins for what the plug-ins use of vLLM 0.33, with the same interfaces, for machines without vLLM.

`install_vllm` puts them into `sys.modules`; they carry no behaviour beyond the documented one: `BatchUpdate` is applied
in the order removed, added, moved, and the list of output tokens of a request is live.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.plugins.engine_fakes import pretend_versions

__all__ = ["install_vllm"]


@dataclass
class SamplingParams:
    max_tokens: int | None = 16
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    bad_words: list[str] = field(default_factory=list)
    allowed_token_ids: list[int] | None = None
    structured_outputs: Any = None
    thinking_token_budget: int | None = None
    trace_decode_token_ids: list[int] | None = None
    extra_args: dict[str, Any] | None = None


class MoveDirectionality(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: Sequence[int]
    added: Sequence[tuple[int, SamplingParams, list[int] | None, list[int]]]
    moved: Sequence[tuple[int, int, MoveDirectionality]]


class AdapterLogitsProcessor(ABC):
    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        self.req_info: dict[int, partial[Any]] = {}

    @abstractmethod
    def new_req_logits_processor(self, params: SamplingParams) -> Any: ...

    @abstractmethod
    def is_argmax_invariant(self) -> bool: ...

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        if batch_update is None:
            return
        info = self.req_info
        for index in batch_update.removed:
            info.pop(index, None)
        for index, params, _prompt, output in batch_update.added:
            info.pop(index, None)
            processor = self.new_req_logits_processor(params)
            if processor is not None:
                info[index] = partial(processor, output)
        for source, target, direction in batch_update.moved:
            first, second = info.pop(source, None), info.pop(target, None)
            if first is not None:
                info[target] = first
            if second is not None and direction is MoveDirectionality.SWAP:
                info[source] = second

    def apply(self, logits: Any) -> Any:
        for row, processor in self.req_info.items():
            logits[row] = processor(logits[row])
        return logits


@dataclass(frozen=True)
class LogitsContext:
    expanded_idx_mapping: Any
    idx_mapping: Any
    idx_mapping_np: Any
    expanded_local_pos: Any
    input_ids: Any
    pos: Any
    seq_lens_upper_bound_np: Any


@dataclass(frozen=True)
class LogitsProcRequestState:
    device: Any
    max_num_reqs: int
    vocab_size: int
    all_token_ids: Any
    prompt_len: Any
    prefill_len: Any
    total_len: Any


class LogitsProcessor(ABC):
    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self.staged = 0

    def apply_staged_writes(self) -> None:
        self.staged += 1

    @abstractmethod
    def apply(self, logits: Any, ctx: LogitsContext) -> Any: ...


def install_vllm(monkeypatch: pytest.MonkeyPatch, version: str = "0.33.0") -> None:
    """Make the imports of the plug-ins find these classes, and the plug-ins themselves be loaded again."""
    contents: dict[str, dict[str, Any]] = {
        "vllm": {},
        "vllm.sampling_params": {"SamplingParams": SamplingParams},
        "vllm.tokenizers": {"cached_tokenizer_from_config": lambda config: config.tokenizer},
        "vllm.v1.sample.logits_processor": {
            "AdapterLogitsProcessor": AdapterLogitsProcessor,
            "BatchUpdate": BatchUpdate,
            "MoveDirectionality": MoveDirectionality,
        },
        "vllm.v1.worker.gpu.sample.logits_processor": {
            "LogitsProcessor": LogitsProcessor,
            "LogitsContext": LogitsContext,
            "LogitsProcRequestState": LogitsProcRequestState,
        },
    }
    for name, content in contents.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            parent = ".".join(parts[:end])
            if parent not in contents or parent == name:
                module = ModuleType(parent)
                module.__dict__.update(content if parent == name else {}, __path__=[])
                monkeypatch.setitem(sys.modules, parent, module)
    for plugin in ("constrain.plugins.vllm_v1", "constrain.plugins.vllm_v2"):
        monkeypatch.setitem(sys.modules, plugin, ModuleType(plugin))  # so that what is loaded now is undone
        del sys.modules[plugin]
    pretend_versions(monkeypatch, vllm=version)


def make_config(tokenizer: Any, size: int, ends: list[int]) -> Any:
    """Return what the plug-ins read of a VllmConfig."""
    return SimpleNamespace(
        model_config=SimpleNamespace(
            tokenizer=tokenizer,
            get_vocab_size=lambda: size,
            try_get_generation_config=lambda: {"eos_token_id": ends if len(ends) > 1 else ends[0]},
        )
    )
