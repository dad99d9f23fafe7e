"""Attention masks of a pass over rows of different lengths, whose new tokens form trees.

A new token attends to the text in the cache of its row, to its ancestors among the new tokens, and to itself. With
layers of sliding windows, only to those less than a window away, by their positions in the text rather than in the
cache. New tokens that fill a row up to the width of the pass attend as a chain does; nobody reads what they produce,
but it has to be finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["AttentionKinds", "describe_attention", "list_positions", "make_attention_masks"]

SUPPORTED = {"full_attention", "sliding_attention"}


@dataclass(frozen=True, slots=True)
class AttentionKinds:
    """The attention layers of a model.

    windows: the window of each kind of layer, None for full attention. is_mapping: whether the model takes a dict of
    masks, by kind. is_additive: whether masks are added to scores (0 or the lowest number) rather than being bool.
    is_causal: whether the model attends to all keys of the cache where it is given no mask and one token.
    """

    windows: dict[str, int | None]
    is_mapping: bool
    is_additive: bool
    is_causal: bool


def describe_attention(model: Any) -> AttentionKinds | None:
    """Return the kinds of attention of a model, or None if its masks cannot be made here."""
    config = model.config.get_text_config(decoder=True)
    implementation = getattr(config, "_attn_implementation", None)
    if implementation not in ("sdpa", "eager"):
        return None
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        kinds = ["full_attention" if window is None else "sliding_attention"]
    if not set(kinds) <= SUPPORTED or ("sliding_attention" in kinds and not isinstance(window, int)):
        return None
    windows = {kind: window if kind == "sliding_attention" else None for kind in dict.fromkeys(kinds)}
    is_causal = implementation == "sdpa" and [*windows.values()] == [None]
    return AttentionKinds(windows, len(windows) > 1, implementation == "eager", is_causal)


def list_positions(
    starts: Sequence[int], depths: Sequence[Sequence[int]], width: int, limit: int | None = None
) -> torch.Tensor:
    """Return the positions int64 [rows, width] of new tokens in their texts.

    starts: length of the text of each row. depths: number of ancestors of each new token of a row; the tokens that
    fill the row are its continuation. limit: number of positions that the model has; tokens that only fill a row stay
    below it.
    """
    rows = []
    for start, row in zip(starts, depths):
        last = row[-1] if row else -1
        rows.append([start + depth for depth in row] + [start + last + 1 + k for k in range(width - len(row))])
    positions = torch.tensor(rows)
    return positions if limit is None or max(starts) + width <= limit else positions.clamp_(max=limit - 1)


def make_attention_masks(
    kinds: AttentionKinds,
    starts: Sequence[int],
    parents: Sequence[Sequence[int]],
    positions: torch.Tensor,
    dtype: torch.dtype,
) -> Any:
    """Return the attention mask [rows, 1, q, visible] of a pass, or a dict of one mask for each kind of layer.

    parents: of each new token, -1 for the first of a row. positions: int64 [rows, q]. dtype: of additive masks.
    """
    is_chain = all(parent == node - 1 for row in parents for node, parent in enumerate(row))
    if is_chain and len(set(starts)) == 1 and list(kinds.windows.values()) == [None]:
        width, device = positions.shape[1], positions.device
        seen = torch.ones((width, starts[0] + width), dtype=torch.bool, device=device)
        seen = (seen if width == 1 else seen.tril_(starts[0])).expand(len(starts), -1, -1)
        masks = {"full_attention": seen}
    else:
        masks = combine_masks(kinds, starts, None if is_chain else parents, positions)
    made = {kind: convert_mask(mask[:, None], kinds, dtype) for kind, mask in masks.items()}
    return made if kinds.is_mapping else next(iter(made.values()))


def convert_mask(mask: torch.Tensor, kinds: AttentionKinds, dtype: torch.dtype) -> torch.Tensor:
    """Return a mask in the form that the model takes: bool, or 0 and the lowest number."""
    if not kinds.is_additive:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)


def combine_masks(
    kinds: AttentionKinds, starts: Sequence[int], parents: Sequence[Sequence[int]] | None, positions: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the mask bool [rows, q, visible] of each kind of layer. parents: None if every row is a chain."""
    device, width = positions.device, positions.shape[1]
    first = torch.tensor(starts, device=device)
    keys = torch.arange(max(starts) + width, device=device)
    offsets = keys[None] - first[:, None]  # of a key among the new tokens of its row
    if parents is None:
        seen = offsets[:, None] <= torch.arange(width, device=device)[:, None]
    else:
        ancestors = torch.stack([find_ancestors(row, width) for row in parents]).to(device)
        chosen = offsets.clamp(0, width - 1)[:, None, :].expand(-1, width, -1)
        seen = ancestors.gather(2, chosen) & (offsets < width)[:, None] | (offsets < 0)[:, None]
    masks = {}
    for kind, window in kinds.windows.items():
        masks[kind] = seen
        if window is not None:
            places = torch.where(offsets < 0, keys[None], positions.gather(1, offsets.clamp(0, width - 1)))
            masks[kind] = seen & (positions[:, :, None] - places[:, None] < window)
    return masks


def find_ancestors(parents: Sequence[int], width: int) -> torch.Tensor:
    """Return bool [width, width]: whether the second token is the first or one of its ancestors."""
    out = torch.zeros((width, width), dtype=torch.bool)
    for node in range(width):
        parent = parents[node] if node < len(parents) else node - 1
        if parent >= 0:
            out[node] = out[parent]
        out[node, node] = True
    return out
