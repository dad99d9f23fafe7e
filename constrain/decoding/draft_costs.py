"""Which drafts of forced text are worth their cost in a step of a batch.

A draft saves its text one row in each of as many later steps as it has tokens; it costs this step wider rows, or a
forward pass of its own. Alone, a text saves whole passes. Among sixty others these passes are made anyway, and a draft
pays only if it is long, if several texts have one, or if it fits into a pass that feeds a prompt.

Costs are those that the runner estimates from its own constants and not measured times, so that the same batch is
always drafted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["find_least_draft"]


def find_least_draft(
    widths: Sequence[int], lengths: Sequence[int], estimate_cost: Callable[[Sequence[int]], float]
) -> int:
    """Return the length from which on drafts are made in a step; shorter ones cost more than they save.

    Parameters
    ----------
    widths : sequence of int
        The tokens that each of n rows is fed without its draft.
    lengths : sequence of int
        The tokens of each row's draft, all of which are expected to be accepted; 0 for a row without a draft.
    estimate_cost : callable
        Returns the cost of a step from the tokens of its rows (`ModelRunner.estimate_cost`).

    Returns
    -------
    int
        One of the lengths above 0, or one more than the greatest if no draft is worth it.
    """
    saving = estimate_cost([1] * len(widths)) / len(widths)
    best, gain, without = max(lengths) + 1, 0.0, estimate_cost(widths)
    for least in sorted({length for length in lengths if length}, reverse=True):
        made = [length if length >= least else 0 for length in lengths]
        extra = estimate_cost([width + length for width, length in zip(widths, made)]) - without
        if (found := sum(made) * saving - extra) > gain:
            best, gain = least, found
    return best
