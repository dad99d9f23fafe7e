"""Groups of bytes, by which the tokens of a MaskTable are listed (`kernels.byte_rows`).

Patterns rarely divide a group. Those that a pattern often has together are neighbours, since rows are also kept of four
groups and of sixteen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout as at

__all__ = ["BYTE_GROUPS"]

PARTS = [b"0123456789", b"abcdef", b"ghijklmnopqrstuvwxyz", b"ABCDEF", b"GHIJKLMNOPQRSTUVWXYZ"]
SINGLE = b"-_./ :@+,=~!#$%&'()*;<>?[]^`{|}\"\\\x7f"

MULTIBYTE_SINGLE = b"\xc2\xe1\xe2\xe3\xef"
"""First bytes of the white space beyond ASCII, of which E2 begins the line ends that a dot does not match either."""


def _list_groups() -> NDArray[np.int32]:
    """Return the group of each byte."""
    groups = np.full(256, at.MULTIBYTE, np.int32)
    groups[:32] = at.ILL_FORMED
    for number, part in enumerate([*PARTS, *(bytes([byte]) for byte in SINGLE)]):
        groups[list(part)] = number
    for number, byte in enumerate(MULTIBYTE_SINGLE, at.MULTIBYTE + 1):
        groups[byte] = number
    return groups


BYTE_GROUPS = _list_groups()
"""int32[256]: the group of each byte."""
