"""`cached_property`: computed once for each instance, and without a lock that a fork could leave taken."""

from __future__ import annotations

import threading

import pytest

from constrain.base.cached_property import cached_property


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    @cached_property
    def value(self) -> int:
        """The value."""
        self.calls += 1
        return 7


def test_a_value_is_computed_once_for_each_instance() -> None:
    one, other = Counted(), Counted()
    assert one.value == one.value == other.value == 7
    assert (one.calls, other.calls) == (1, 1)
    del one.value
    assert one.value == 7 and one.calls == 2
    assert isinstance(Counted.value, cached_property) and Counted.value.__doc__ == "The value."


def test_a_value_can_be_computed_while_another_thread_computes_one() -> None:
    """As in a child that was forked meanwhile, where the other thread never ends."""
    entered, leave = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> str:
            if threading.current_thread() is not threading.main_thread():
                entered.set()
                leave.wait(30)
            return "made"

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    assert entered.wait(30)
    try:
        assert Slow().value == "made"  # the main thread is not kept waiting
    finally:
        leave.set()
        thread.join()


def test_errors_are_not_kept() -> None:
    class Failing:
        @cached_property
        def value(self) -> int:
            raise KeyError("no")

    for _ in range(2):
        with pytest.raises(KeyError):
            assert Failing().value
