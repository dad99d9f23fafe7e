"""The names of a draft as the table that the scan of a document reads (`kernels.document_scan_layout`)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from ....kernels.document_scan_layout import D_HEADER, D_LENGTH, D_W, MULTIPLIER

__all__ = ["build_name_table"]


def build_name_table(
    names: Mapping[str, int], types: Mapping[str, int], is_legacy: bool, most_count: int
) -> tuple[bytes, array[int]]:
    """Return the bytes of all names, and the table of their bits."""
    blob = "".join((*names, *types)).encode()
    slots = 4
    while slots < 2 * len(names):
        slots *= 2
    table = [slots, len(types), is_legacy, most_count, *[-1] * (D_W * slots)]
    first = 0
    for name, bits in names.items():
        octets = name.encode()
        number = hash_octets(octets)
        slot = number % slots
        while table[D_HEADER + D_W * slot + D_LENGTH] >= 0:
            slot = (slot + 1) % slots
        table[D_HEADER + D_W * slot : D_HEADER + D_W * slot + D_W] = number, first, len(octets), bits
        first += len(octets)
    for name, bit in types.items():
        table += (first, len(name), bit)
        first += len(name)
    return blob, array("q", table)


def hash_octets(octets: bytes) -> int:
    """Return what `document_scan.hash_name` returns for a name."""
    number = 0
    for octet in octets:
        number = number * MULTIPLIER + octet
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
