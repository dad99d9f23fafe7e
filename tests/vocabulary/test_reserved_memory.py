"""Mask tables and state caches reserve addresses, not memory."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import constrain
from constrain.base.errors import LimitError
from constrain.base.reserved_memory import HUGE_PAGE, NO_RESERVE, map_buffer, map_pages
from constrain.vocabulary.mask_table import MaskTable
from constrain.vocabulary.vocabulary import Vocabulary

SMAPS = Path("/proc/self/smaps")


def read_accounted_bytes() -> int:
    """The bytes of the mappings of this process that Linux counts as memory in use ("ac" in VmFlags)."""
    pairs = re.findall(r"^Size: +([0-9]+) kB$.*?^VmFlags:([^\n]*)$", SMAPS.read_text(), re.MULTILINE | re.DOTALL)
    return sum(1024 * int(size) for size, flags in pairs if "ac" in flags.split())


def has_flags() -> bool:
    """Whether this system says which mappings it counts."""
    return bool(NO_RESERVE) and SMAPS.exists() and "VmFlags" in SMAPS.read_text()


@pytest.mark.skipif(not has_flags(), reason="the system does not say which mappings it counts as memory")
def test_untouched_pages_are_not_counted_as_memory() -> None:
    """A process with dozens of vocabularies could not be forked, if it were refused as much memory again."""
    before = read_accounted_bytes()
    tables = [MaskTable(Vocabulary.bytes()) for _ in range(4)]
    matchers = [constrain.compile(Vocabulary.bytes(), regex=f"a{{{k}}}").matcher() for k in range(1, 5)]
    reserved = sum(array.nbytes for table in tables for array in table.arrays.values())
    assert reserved > 1 << 30
    assert read_accounted_bytes() - before < reserved / 8
    assert all(matcher.allows(97) for matcher in matchers)


def test_pages_are_zero_and_private() -> None:
    pages = np.frombuffer(map_pages(1 << 16, "a test", "none"), np.int32)
    assert not pages.any()
    pages[5] = 7
    assert pages[5] == 7


@pytest.mark.parametrize("size", [0, 1, HUGE_PAGE - 1, HUGE_PAGE + 3])
def test_buffers_have_their_size_and_are_writable_to_the_end(size: int) -> None:
    buffer = map_buffer(size)
    assert len(buffer) == size and bytes(buffer) == bytes(size)
    buffer[size - 1 :] = b"x" * min(size, 1)
    assert bytes(buffer[size - 1 :]) == b"x" * min(size, 1)


@pytest.mark.parametrize("filled", [1, HUGE_PAGE, 2 * HUGE_PAGE + 5])
def test_pages_that_are_filled_at_once_are_zero_too(filled: int) -> None:
    pages = map_pages(3 * HUGE_PAGE, "a test", "none", filled)
    assert len(pages) >= 3 * HUGE_PAGE and not np.frombuffer(pages, np.int32).any()


@pytest.mark.skipif(not NO_RESERVE, reason="addresses are limited by Linux's ulimit -v")
def test_too_few_addresses_are_refused_with_a_limit_error() -> None:
    code = (
        "import resource\n"
        "from constrain.base.errors import LimitError\n"
        "from constrain.base.reserved_memory import map_pages\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "try:\n"
        "    map_pages(1 << 31, 'a table', 'Use less.')\n"
        "except LimitError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[0] == "a table reserves 2,147,483,648 bytes of addresses, which this process lacks"
    assert issubclass(LimitError, constrain.ConstrainError)
