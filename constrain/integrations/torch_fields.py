"""log Z of a `SequenceField` for torch's autograd: the gradient is the marginals, computed in one further pass."""

from __future__ import annotations

from typing import Any

import torch

from ..sampling.research.sequence_field import SequenceField

__all__ = ["field_log_z", "field_loss"]


class _LogPartition(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, field: SequenceField, emissions: torch.Tensor, transitions: torch.Tensor) -> torch.Tensor:
        found = field.marginals(emissions.detach().cpu().numpy(), transitions.detach().cpu().numpy())
        pairs = torch.from_numpy(found.pairs)
        pairs = pairs if transitions.dim() == 3 else pairs.sum(0)
        ctx.save_for_backward(torch.from_numpy(found.labels).to(emissions), pairs.to(transitions))
        return torch.tensor(found.log_z, dtype=emissions.dtype, device=emissions.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        labels, pairs = ctx.saved_tensors
        return None, grad * labels, grad * pairs.to(grad.dtype)


def field_log_z(field: SequenceField, emissions: torch.Tensor, transitions: torch.Tensor | None = None) -> torch.Tensor:
    """Return log Z as a scalar that can be differentiated once, by emissions and transitions.

    Parameters
    ----------
    field : SequenceField
    emissions : Tensor [T, V]
        Log potentials of the labels at each place, unnormalised, of any floating-point dtype and device. The passes run
        on the CPU in float64.
    transitions : Tensor [V, V] or [T - 1, V, V], optional
        Log potentials of adjacent labels.

    Returns
    -------
    Tensor []
        Of the dtype and device of `emissions`.

    Raises
    ------
    ArgumentError, LimitError
        As `SequenceField.log_z`.
    """
    if transitions is None:
        transitions = emissions.new_zeros((emissions.shape[-1], emissions.shape[-1]))
    result: torch.Tensor = _LogPartition.apply(field, emissions, transitions)  # type: ignore[no-untyped-call]
    return result


def field_loss(
    field: SequenceField, labels: list[int], emissions: torch.Tensor, transitions: torch.Tensor | None = None
) -> torch.Tensor:
    """Return -log P(labels), log Z minus the score, as a scalar that can be differentiated once.

    Labels that the constraint does not accept have infinite loss: remove them from the training data.
    """
    if not field.accepts(labels):
        return emissions.new_full((), torch.inf)
    places = torch.arange(len(labels), device=emissions.device)
    chosen = torch.tensor(labels, device=emissions.device)
    score = emissions[places, chosen].sum()
    if transitions is not None and len(labels) > 1:
        moved = transitions if transitions.dim() == 3 else transitions.expand(len(labels) - 1, -1, -1)
        score = score + moved[places[:-1], chosen[:-1], chosen[1:]].sum()
    return field_log_z(field, emissions, transitions) - score
