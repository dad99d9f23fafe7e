"""The engines that need a GPU, vLLM and SGLang: their own classes from the wheel, with a simulated scheduler and model.

The simulated model draws random logits, so a text ends because of its budget.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np

from .tally import EngineRefusal, MaskCheck, PluginEngine

__all__ = ["Sglang", "VllmV1", "VllmV2"]

MOST = 1_000
"""Most tokens of a text."""


class ClassEngine(PluginEngine):
    """One text at a time through the classes of an engine."""

    where = "its classes"

    def load(self) -> Any:
        """See `PluginEngine`."""
        import torch

        from constrain import Vocabulary
        from constrain.demo import model_folder

        torch.set_num_threads(1)  # see `local_engines.Transformers`
        self.vocabulary = Vocabulary.from_pretrained(model_folder())
        self.open()
        return self.vocabulary

    def open(self) -> None:
        """Create the objects of the engine that exist once per server."""
        raise NotImplementedError

    def begin(self, source: dict[str, Any], max_tokens: int | None) -> Any:
        """Return a function of the tokens so far and a row of logits, float32 tensor [V], that masks the row."""
        raise NotImplementedError

    def answer(self, constraint: Any, source: dict[str, Any], max_tokens: int | None, seed: int) -> str | None:
        """See `PluginEngine`."""
        tokens = self.write(constraint, source, max_tokens, MOST, seed, None)
        ended = bool(tokens) and tokens[-1] in constraint.vocabulary.eos_ids
        return constraint.vocabulary.decode(tokens) if ended else None

    def compare(self, constraint: Any, source: dict[str, Any], tokens: int, seed: int, check: MaskCheck) -> None:
        """See `PluginEngine`."""
        self.write(constraint, source, None, tokens, seed, check)

    def write(
        self, constraint: Any, source: dict[str, Any], budget: int | None, most: int, seed: int, check: MaskCheck | None
    ) -> list[int]:
        """Return the tokens of a text."""
        import torch

        rng, step = np.random.default_rng(seed), self.begin(source, budget)
        tokens: list[int] = []
        for _ in range(most):
            logits = rng.gumbel(size=constraint.vocabulary.size).astype(np.float32)
            row = step(list(tokens), torch.from_numpy(logits))
            if check is not None:
                check(tokens, row.isfinite().numpy())
            tokens.append(int(row.argmax()))
            if tokens[-1] in constraint.vocabulary.eos_ids:
                break
        return tokens


class Vllm(ClassEngine):
    """Base of both runners: SamplingParams and the config of the model."""

    package = "vllm"

    def make_config(self) -> Any:
        """Return what the plug-in reads of a VllmConfig, with vLLM's own ModelConfig."""
        from vllm.config import ModelConfig

        from constrain.demo import model_folder

        return SimpleNamespace(model_config=ModelConfig(model=str(model_folder())))

    def make_params(self, source: dict[str, Any], max_tokens: int | None) -> Any:
        """Return SamplingParams that vLLM's front end has checked."""
        from vllm.sampling_params import SamplingParams

        from constrain.plugins.vllm_requests import validate_vllm_params

        made = SamplingParams(max_tokens=max_tokens, extra_args={"constrain": json.dumps(source)})
        validate_vllm_params(made)
        return made


class VllmV1(Vllm):
    """vLLM's V1 runner: the request is in the last of three rows, beside one without a constraint and one that left."""

    name = "vllm-v1"

    def open(self) -> None:
        """See `ClassEngine`."""
        import torch

        from constrain.plugins.vllm_v1 import VllmV1Processor

        self.processor = VllmV1Processor(self.make_config(), torch.device("cpu"), False)

    def begin(self, source: dict[str, Any], max_tokens: int | None) -> Any:
        """See `ClassEngine`."""
        import torch
        from vllm.sampling_params import SamplingParams
        from vllm.v1.sample.logits_processor import BatchUpdate, MoveDirectionality

        live: list[int] = []
        self.processor.req_info.clear()
        added = [(0, SamplingParams(), None, []), (1, self.make_params(source, max_tokens), None, live)]
        self.processor.update_state(BatchUpdate(2, [], added, []))
        self.processor.update_state(BatchUpdate(2, [], [], [(0, 1, MoveDirectionality.SWAP)]))

        def step(tokens: list[int], row: Any) -> Any:
            live[:] = tokens
            out = self.processor.apply(torch.stack([row, row.clone()]))
            if not out[1].isfinite().all():
                raise AssertionError("the row of another request was masked")
            return out[0]

        return step


class VllmV2(Vllm):
    """vLLM's V2 runner: a slot that was used before, tokens in a buffer of the runner, a random draft row each step."""

    name = "vllm-v2"

    def open(self) -> None:
        """See `ClassEngine`."""
        import torch
        from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcRequestState

        from constrain.plugins.vllm_v2 import VllmV2Processor

        self.tokens = torch.zeros((2, MOST + 50), dtype=torch.int32)
        self.state = LogitsProcRequestState(
            device=torch.device("cpu"), max_num_reqs=2, vocab_size=self.vocabulary.size,
            all_token_ids=SimpleNamespace(gpu=self.tokens), prompt_len=SimpleNamespace(np=np.array([3, 5])),
            prefill_len=None, total_len=None,
        )  # fmt: skip
        self.processor = VllmV2Processor(self.make_config(), self.state)

    def begin(self, source: dict[str, Any], max_tokens: int | None) -> Any:
        """See `ClassEngine`."""
        import torch
        from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext

        self.processor.add_request(1, self.make_params(source, max_tokens))
        self.processor.apply_staged_writes()

        def step(tokens: list[int], row: Any) -> Any:
            self.tokens[1, 5 : 5 + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
            position = 4 + len(tokens)
            columns = torch.tensor(
                [[1, 1, 0], [0, 1, 0], [tokens[-1] if tokens else 7, 11, 5], [position, position + 1, 9]]
            )
            context = LogitsContext(
                expanded_idx_mapping=columns[0], idx_mapping=torch.tensor([1, 0]), idx_mapping_np=np.array([1, 0]),
                expanded_local_pos=columns[1], input_ids=columns[2], pos=columns[3],
                seq_lens_upper_bound_np=np.array([position + 2, 10]),
            )  # fmt: skip
            out = self.processor.apply(torch.stack([row, row.clone(), row.clone()]), context)
            if not out[2].isfinite().all():
                raise AssertionError("the row of another request was masked")
            return out[0]

        return step


class Sglang(ClassEngine):
    """SGLang's grammar objects: a draft is taken back before each token."""

    name, package = "sglang", "sglang"

    def open(self) -> None:
        """See `ClassEngine`."""
        from constrain.plugins.sglang_backend import SglangBackend

        self.backend = SglangBackend(self.vocabulary)

    def begin(self, source: dict[str, Any], max_tokens: int | None) -> Any:
        """See `ClassEngine`."""
        import torch
        from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject

        grammar = self.backend._init_value_dispatch(("json", source["schema"]), False)
        if isinstance(grammar, InvalidGrammarObject):
            if isinstance(self.backend.dispatch_json(source["schema"]), InvalidGrammarObject):
                raise ValueError(grammar.error_message)
            raise EngineRefusal(grammar.error_message)  # SGLang did not ask the backend
        if max_tokens is not None:
            grammar.limit_tokens(max_tokens)
        words = (self.vocabulary.size + 31) // 32
        mask = torch.empty((1, words), dtype=torch.int32)

        def step(tokens: list[int], row: Any) -> Any:
            if tokens:
                grammar.accept_token(tokens[-1])
            grammar.fill_vocab_mask(mask, 0)
            allowed = np.flatnonzero(np.unpackbits(mask.numpy().view(np.uint8), bitorder="little"))
            grammar.accept_token(int(allowed[0]))
            grammar.rollback(1)
            grammar.apply_vocab_mask(logits=row[None], vocab_mask=mask)
            return row

        return step
