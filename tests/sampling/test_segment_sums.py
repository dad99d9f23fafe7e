"""Sums and maxima of segments against loops, empty segments and zero probabilities included."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from constrain.sampling.research.segment_sums import max_segments, sum_segments

logs = st.one_of(st.just(-math.inf), st.floats(-800, 800))


@given(st.lists(st.lists(logs, max_size=5), min_size=1, max_size=6))
def test_segments_against_loops(segments: list[list[float]]) -> None:
    values = np.array([one for segment in segments for one in segment], np.float64)
    first = np.cumsum([0, *map(len, segments)]).astype(np.int64)
    tops, sums = max_segments(values, first), sum_segments(values, first)
    for segment, top, total in zip(segments, tops.tolist(), sums.tolist(), strict=True):
        assert top == max(segment, default=-math.inf)
        if top == -math.inf:
            assert total == -math.inf
        else:
            wanted = top + math.log(math.fsum(math.exp(one - top) for one in segment))
            assert math.isclose(total, wanted, rel_tol=1e-12, abs_tol=1e-12)
