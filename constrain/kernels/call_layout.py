"""Layout of what Python passes to kernels besides contexts: positions of Matchers, sums of draws."""

from __future__ import annotations

from typing import Final

AT_CONTEXT: Final = 0  # address of the context of its state cache
AT_SET: Final = 1  # id of the set of configurations
AT_EPOCH: Final = 2  # epoch of the state cache in which the id of the set is valid
AT_THREAD: Final = 3  # thread that owns the state cache
AT_PLAIN: Final = 4  # tokens below are stepped by their bytes alone; 0: take the slow path; -1: the text has ended
AT_OUT: Final = 5  # the latest array that was masked (address of the object) and its fields; 0: none
AT_OUT_DATA: Final = 6
AT_OUT_DIMS: Final = 7  # number of dimensions
AT_OUT_TYPE: Final = 8
AT_OUT_FLAGS: Final = 9
AT_HISTORY: Final = 10  # address of the history: an int32 record for each token or text that was accepted
AT_LENGTH: Final = 11  # how many were accepted
AT_CAPACITY: Final = 12  # how many records the history has space for
AT_SELF: Final = 13  # address of the position itself: here begins the list of a batch of one
POSITION_W: Final = 14
CHANGED: Final = -2  # what `repeat_mask` returns if the position or the array is not as it was

HISTORY_W: Final = 2
HISTORY_SET: Final = 0  # id of the set before it
HISTORY_ITEM: Final = 1  # the token, or -1 - i for the i-th text that was accepted as bytes

GROUP: Final = 64
"""Words of a mask whose masses are summed together: about the square root of the words of a large vocabulary."""

LONGEST_RUN: Final = 12
"""Repetitions of a letter or a digit after which `next_masks.fill_next_masks` makes masks: most tokens have no more."""
FIRST_TOKEN: Final = 256 + 2 * LONGEST_RUN
"""The place of token 0 in the order of `next_masks`: before it are the bytes, and the repetitions."""
