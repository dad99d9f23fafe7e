"""Diagnostics from the weights of a set of draws: log Z, the divergence from the target, and whether to trust them.

With q the distribution of the draws, pi = p given L and weights W = p / q on L, so that E_q[W] = Z:

    KL(q || pi) = log E_q[W] - E_q[log W]          a Jensen gap
    KL(pi || q) = E_q[(W / Z) log(W / Z)]

Neither needs a call of the model. Draws of weight 0 (dead ends) are excluded from both and reported separately: the
divergences are those of q given that a text ends. If weights are noisy estimates, as those of `awrs`, the noise counts
as divergence.

What the draws say of themselves is not enough: a mode that none of them reached changes neither weights nor errors. So
statistics are *steady* if the weights that were seen are even enough, and *trusted* only if, in addition, texts that
were not seen can hold little (`mass_bounds`: the gap).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .mass_bounds import LARGEST_GAP
from .results import effective_size, group_weights, log_sum

__all__ = ["WEIGHT_STATISTICS", "weight_stats"]

LARGEST = 0.05
"""Share of the total weight above which a single draw dominates a mean too much."""
WITHIN = 0.05
"""Maximum relative standard error of a trusted divergence: two of them are 10 %."""
NONE = 0.05
"""Nats: smaller divergences count as negligible, and their errors are measured relative to this."""


WEIGHT_STATISTICS = (
    "log_z", "ess", "kl_to_target", "kl_to_error", "kl_from_target", "kl_from_error", "dead_ends", "largest", "gap",
    "steady", "trusted",
)  # fmt: skip
"""The names of what `weight_stats` returns."""


def weight_stats(
    log_weights: NDArray[np.float64], *, groups: Sequence[int] | None = None, gap: float = math.inf
) -> dict[str, float]:
    """Compute statistics of log-weights (float64 [n], nats); {} if there are none.

    groups: draws that depend on each other, as in `results.Draws`. gap: by how much texts not seen could multiply Z, in
    nats, see `mass_bounds`; inf if that is not known.

    log_z: log of the mean weight. ess: effective sample size. kl_to_target, kl_from_target: KL(q || pi) and KL(pi ||
    q), with the standard errors kl_to_error and kl_from_error; nan if all draws have weight 0. dead_ends: share of the
    draws of weight 0. largest: largest share of the total weight of one draw (or group). gap: as given. steady: 1 if no
    draw dominates and both standard errors are small, else 0. trusted: 1 if steady and the gap is at most LARGEST_GAP,
    else 0.
    """
    n = len(log_weights)
    if not n:
        return {}
    alive = log_weights[log_weights > -np.inf]
    total = log_sum(alive)
    if not len(alive):
        names = ("kl_to_target", "kl_to_error", "kl_from_target", "kl_from_error", "largest")
        nothing = {"log_z": -math.inf, "ess": 0.0, **dict.fromkeys(names, math.nan), "dead_ends": 1.0, "gap": gap}
        return {**nothing, "steady": 0.0, "trusted": 0.0}
    logs = alive - (total - math.log(len(alive)))  # logs of weights with mean 1
    weights = np.exp(logs)
    to_target = max(0.0, -float(logs.mean()))
    from_target = max(0.0, float((weights * logs).mean()))
    # first-order errors: of log(mean w) - mean(log w), and of mean(w log w) / mean(w) - log(mean w)
    to_error = float(np.std(weights - 1 - logs)) / math.sqrt(len(alive))
    from_error = float(np.std(weights * logs - weights * (1 + from_target))) / math.sqrt(len(alive))
    largest = math.exp(float(group_weights(log_weights, groups).max()) - (total - math.log(len(alive)))) / len(alive)
    close = all(e <= WITHIN * max(kl, NONE) for kl, e in ((to_target, to_error), (from_target, from_error)))
    steady = largest <= LARGEST and close
    return {
        "log_z": total - math.log(n),
        "ess": effective_size(log_weights, groups),
        "kl_to_target": to_target,
        "kl_to_error": to_error,
        "kl_from_target": from_target,
        "kl_from_error": from_error,
        "dead_ends": 1 - len(alive) / n,
        "largest": largest,
        "gap": gap,
        "steady": float(steady),
        "trusted": float(steady and gap <= LARGEST_GAP),
    }
