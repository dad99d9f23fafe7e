"""transformers: constraints in continuous batching, `model.generate_batch`, whose interface takes no processors.

    outputs = generate_batch_constrained(model, prompts, constraints, max_new_tokens=100)

Private parts of transformers 5.23 are used, all of them here, and other versions are refused by name:

- `CLASSIC_TO_CB_PROCESSORS_MAP`: storage for the arguments of processors is counted only for those that were converted
  from another class by this map. `Marker` is such a class, converted to `BatchMasks`.
- `model._get_logits_processor`: replaced on this model during the call, to add a Marker.
- `RequestState.initial_tokens`, `generated_tokens`, `_true_initial_tokens`: the text of a request, also after its
  tokens were moved to its prompt because memory ran out.

Each request carries the number of its constraint in `logit_processor_kwargs`. The masks of a step are computed on the
host before the forward pass. Asynchronous batching, CUDA graphs and compilation are switched off, because they prepare
a step before the tokens of the last one are known on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, LogitsProcessor
from transformers.generation.continuous_batching import cb_logits_processors as private

from ..base.errors import ArgumentError, ConstrainError, check_count
from ..engine.constraint import Constraint
from ..integrations.row_positions import RowEndings
from .engine_versions import check_engine_version
from .request_matcher import RequestMatcher, fill_request_masks
from .tensor_rows import mask_tensor_rows

__all__ = ["BatchMasks", "generate_batch_constrained"]

check_engine_version("transformers")

FIELD = "constraint_number"


class Marker(LogitsProcessor):  # type: ignore[misc]
    """A processor that transformers converts to `BatchMasks`. requests: the positions by number."""

    supports_continuous_batching = True

    def __init__(self, requests: Sequence[RequestMatcher | None]) -> None:
        self.requests = requests
        self.error: BaseException | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Raise ConstrainError: it was not converted, and the texts would not be constrained."""
        raise ConstrainError("transformers did not convert the processor of continuous batching")


PAGE_TOKENS = 256
"""Tokens of a page of the cache."""
MOST_BLOCKS = 1024
"""Most pages of a layer on the CPU; further requests wait."""
MOST_BATCH_TOKENS = 512
"""Most tokens of a step on the CPU."""


class BatchMasks(private.ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """Masks the rows of a step. The int32 of a row is not used: the masks stay on the host until they are applied."""

    supported_kwargs: ClassVar[dict[str, type]] = {FIELD: int}
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, marker: Marker) -> None:
        self.marker = marker
        self.rows: list[int] = []
        self.masks: Any = None

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Fill the arguments of rows that are not in use."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: Any) -> torch.Tensor:
        """Compute the masks of the rows of this step; return the number of each row's constraint, int32 [rows]."""
        numbers = [one.state.logit_processor_kwargs.get(FIELD, -1) for one in requests_with_new_token]
        self.rows, followed = [], []
        for row, (number, one) in enumerate(zip(numbers, requests_with_new_token)):
            request = self.marker.requests[number] if number >= 0 else None
            if request is None:
                continue
            request.follow(read_text(one.state))
            self.rows.append(row)
            followed.append(request)
        words = len(followed[0].ends) if followed else 0
        self.masks = np.zeros((len(followed), words), np.int32)
        fill_request_masks(followed, self.masks)
        return torch.tensor(numbers, dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the scores, [rows, V], with every token that is not allowed at -inf."""
        scores = scores.clone()
        mask_tensor_rows(scores, self.masks, self.rows)
        return scores


def read_text(state: Any) -> list[int]:
    """Return the tokens of a request after its prompt."""
    start = state._true_initial_tokens or len(state.initial_tokens)
    text: list[int] = [*state.initial_tokens[start:], *state.generated_tokens]
    return text


def generate_batch_constrained(
    model: Any,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constraint | None],
    *,
    max_new_tokens: int,
    generation_config: Any = None,
) -> list[list[int]]:
    """Return the new tokens of each prompt, end tokens included, generated by continuous batching.

    Parameters
    ----------
    model : PreTrainedModel
        The model.
    prompts : sequence of sequences of int
        Token ids of the prompts.
    constraints : sequence of Constraint or None
        One for each prompt; None leaves it unconstrained.
    max_new_tokens : int
        Most tokens of each text, its end token included; constrained texts are complete within it.
    generation_config : GenerationConfig, optional
        By default the model's.

    Raises
    ------
    ArgumentError
        If there are not as many constraints as prompts, or num_return_sequences is not 1.
    LimitError
        If the shortest text of a constraint does not fit in max_new_tokens.
    VocabularyError
        If `generate_batch` stops at other tokens than the Vocabulary's.
    ConstrainError
        If a request failed, or a text was changed by another processor.
    """
    most = check_count("max_new_tokens", max_new_tokens, 1)
    if len(prompts) != len(constraints):
        raise ArgumentError(f"there are {len(prompts)} prompts and {len(constraints)} constraints")
    config = GenerationConfig(**(generation_config or model.generation_config).to_dict())
    if (config.num_return_sequences or 1) != 1:
        raise ArgumentError("num_return_sequences is not 1", hint="Repeat the prompt and its constraint.")
    requests = [None if one is None else RequestMatcher(one, most) for one in constraints]
    for one in constraints:
        if one is not None:
            RowEndings(one.vocabulary, config)
    options = ContinuousBatchingConfig(
        per_request_processors=True, use_async_batching=False, use_cuda_graph=False, **size_cache(model, prompts, most)
    )
    with marked_model(model, Marker(requests)):
        found = run_manager(model, prompts, most, config, options)
    for request in requests:
        if request is not None and request.error is not None:
            raise request.error
    return found


def size_cache(model: Any, prompts: Sequence[Sequence[int]], most: int) -> dict[str, int]:
    """Return the size of the cache for a model on the CPU, where transformers would take most of the free memory; on a
    device, nothing, which leaves it to transformers.
    """
    if model.device.type != "cpu":
        return {}
    blocks = sum(-(-(len(prompt) + most) // PAGE_TOKENS) for prompt in prompts)
    return {
        "page_size": PAGE_TOKENS,
        "num_blocks": min(max(blocks, 1) + 1, MOST_BLOCKS),
        "max_batch_tokens": MOST_BATCH_TOKENS,
    }


@contextmanager
def marked_model(model: Any, marker: Marker) -> Iterator[None]:
    """Have continuous batching of this model use the marker, within the block."""
    original = model._get_logits_processor

    def with_marker(*arguments: Any, **named: Any) -> Any:
        processors = original(*arguments, **named)
        processors.append(marker)
        return processors

    private.CLASSIC_TO_CB_PROCESSORS_MAP[Marker] = BatchMasks
    model._get_logits_processor = with_marker
    try:
        yield
    finally:
        del model._get_logits_processor
        private.CLASSIC_TO_CB_PROCESSORS_MAP.pop(Marker, None)


def run_manager(model: Any, prompts: Sequence[Sequence[int]], most: int, config: Any, options: Any) -> list[list[int]]:
    """Return the new tokens of each prompt. Raise ConstrainError if a request failed or the manager stopped."""
    found: dict[str, list[int]] = {}
    with model.continuous_batching_context_manager(
        generation_config=config, continuous_batching_config=options, block=True, timeout=5, warmup=False
    ) as manager:
        names = [
            manager.add_request(list(prompt), max_new_tokens=most, **{FIELD: number})
            for number, prompt in enumerate(prompts)
        ]
        while len(found) < len(names):
            result = manager.get_result(timeout=1)
            if result is None:
                if not manager.is_running():
                    raise ConstrainError("continuous batching stopped before all texts were complete")
                continue
            if result.error is not None:
                raise ConstrainError(f"a request of continuous batching failed: {result.error}")
            if result.is_finished():
                found[result.request_id] = list(result.generated_tokens)
    return [found[name] for name in names]
