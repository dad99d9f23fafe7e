"""What weights alone say about a set of draws: log Z, how far masking was off, and whether to believe it.

With q the law that was drawn from, pi = p given L and weights W = p / q on L, so that E_q[W] = Z:

    KL(q || pi) = log E_q[W] - E_q[log W]          a Jensen gap
    KL(pi || q) = E_q[(W / Z) log(W / Z)]

Both cost no call of the model. Draws of weight 0 (dead ends) are left out of both and reported by themselves: the
divergences are then those of q given that a text ends. Where weights are noisy estimates, as those of `awrs`, the
noise counts as divergence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .results import log_sum

__all__ = ["weight_stats"]

LARGEST = 0.05
"""Part of all weight beyond which one draw says more than a mean should rest on."""
WITHIN = 0.05
"""Standard error of a divergence, as a part of it, up to which it is trusted: two of them are 10 %."""
NONE = 0.05
"""Nats: a divergence smaller than this is as good as none, and its error is measured against this."""


def weight_stats(log_weights: NDArray[np.float64]) -> dict[str, float]:
    """Of log-weights float64 [n], nats; {} for none.

    log_z: log of the mean weight. ess: effective sample size. kl_to_target, kl_from_target: KL(q || pi) and
    KL(pi || q), with kl_to_error and kl_from_error, their standard errors; nan if no draw counts. dead_ends: part of
    the draws that weigh nothing. largest: part of all weight that one draw has. trusted: 1 if no draw has much of the
    weight and both standard errors are small, else 0.
    """
    n = len(log_weights)
    if not n:
        return {}
    alive = log_weights[log_weights > -np.inf]
    total = log_sum(alive)
    if not len(alive):
        nothing = dict.fromkeys(("kl_to_target", "kl_to_error", "kl_from_target", "kl_from_error"), math.nan)
        return {"log_z": -math.inf, "ess": 0.0, **nothing, "dead_ends": 1.0, "largest": math.nan, "trusted": 0.0}
    logs = alive - (total - math.log(len(alive)))  # of weights whose mean is 1
    weights = np.exp(logs)
    to_target = max(0.0, -float(logs.mean()))
    from_target = max(0.0, float((weights * logs).mean()))
    # first-order errors: of log(mean w) - mean(log w), and of mean(w log w) / mean(w) - log(mean w)
    to_error = float(np.std(weights - 1 - logs)) / math.sqrt(len(alive))
    from_error = float(np.std(weights * logs - weights * (1 + from_target))) / math.sqrt(len(alive))
    largest = math.exp(float(logs.max())) / len(alive)
    close = all(e <= WITHIN * max(kl, NONE) for kl, e in ((to_target, to_error), (from_target, from_error)))
    return {
        "log_z": total - math.log(n),
        "ess": float(np.exp(2 * total - log_sum(2 * alive))),
        "kl_to_target": to_target,
        "kl_to_error": to_error,
        "kl_from_target": from_target,
        "kl_from_error": from_error,
        "dead_ends": 1 - len(alive) / n,
        "largest": largest,
        "trusted": float(largest <= LARGEST and close),
    }
