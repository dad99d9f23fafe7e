"""Guards: answers about members that must differ, by key, text and place (kernels)."""

from __future__ import annotations

from typing import Any

from .context_layout import FULL, GUARD_HASH, GUARDS, HEAD, N_GUARDS
from .context_views import size, view
from .interned_names import mix_hash, probe_slot, request
from .jit.compilation import inlined, kernel
from .record_layout import GUARD_ANSWER, GUARD_KEY, GUARD_PLACE, GUARD_SLOT, GUARD_TEXT, GUARD_W


@inlined("int64(int64, int64, int64, int64)")
def find_guard(c: Any, key: Any, text: Any, place: Any) -> Any:
    """Return the record of GUARDS for a key, a text and a place, or -1 - the free slot of the hash table: none.

    The hash leaves out the place, which few records have.
    """
    head, guards = view(c, HEAD), view(c, GUARDS)
    last = size(c, GUARD_HASH) - 1
    h = mix_hash(mix_hash(0, key), text) & last
    while True:
        k = probe_slot(c, GUARD_HASH, h, 0, head[N_GUARDS], GUARDS, GUARD_W, GUARD_SLOT)
        if k < 0:
            return -h - 1
        is_same = guards[k * GUARD_W + GUARD_KEY] == key and guards[k * GUARD_W + GUARD_TEXT] == text
        if is_same and guards[k * GUARD_W + GUARD_PLACE] == place:
            return k
        h = (h + 1) & last


@kernel("int64(int64, int64, int64, int64, int64)")
def add_guard(c: Any, key: Any, text: Any, place: Any, answer: Any) -> Any:
    """Add a record to GUARDS, with GUARD_BYTES all 0, unless there is one. Return its index, or -1.

    There is one if answering another query of the same mask has answered this one, too.
    """
    head, guards = view(c, HEAD), view(c, GUARDS)
    h = -find_guard(c, key, text, place) - 1
    if h < 0:
        return -h - 1
    k = head[N_GUARDS] + 0
    if GUARD_W * (k + 1) > size(c, GUARDS) or 2 * k > size(c, GUARD_HASH):
        return request(c, FULL, GUARDS)
    for w in range(GUARD_W):
        guards[k * GUARD_W + w] = 0
    guards[k * GUARD_W + GUARD_KEY] = key
    guards[k * GUARD_W + GUARD_TEXT] = text
    guards[k * GUARD_W + GUARD_PLACE] = place
    guards[k * GUARD_W + GUARD_ANSWER] = answer
    guards[k * GUARD_W + GUARD_SLOT] = h
    view(c, GUARD_HASH)[h] = k
    head[N_GUARDS] = k + 1
    return k
