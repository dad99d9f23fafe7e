"""TypeChecker: Python source that parses and type-checks at its end.

A type error in the middle of a module may disappear with what follows: a name that is not defined yet, a variable whose
type is inferred later. Prefixes are therefore checked for syntax only (`PythonChecker`), and types where a text could
end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from tempfile import TemporaryDirectory
from threading import Lock

from ..base.errors import ConstrainError, check_type, describe_value
from .python_checker import PythonChecker
from .verdicts import Verdict

__all__ = ["TypeChecker", "find_type_errors"]

Find = Callable[[str], Sequence[str]]


class TypeChecker:
    """A TextChecker of Python source with correct types.

    Parameters
    ----------
    preamble : str
        Source that precedes each text: the declarations that it may use.
    options : sequence of str
        Options of mypy, such as "--strict"; no configuration file is read unless they name one.
    find_errors : callable, optional
        Another type checker: returns the messages about a module, none if it is correct.

    Raises
    ------
    ConstrainError
        If mypy is needed and not installed.
    """

    def __init__(self, *, preamble: str = "", options: Sequence[str] = (), find_errors: Find | None = None) -> None:
        check_type("preamble", preamble, str, "give Python source")
        if isinstance(options, str) or not all(isinstance(option, str) for option in options):
            raise TypeError(f"options is {describe_value(options)}: give a list of options of mypy")
        if find_errors is not None and not callable(find_errors):
            raise TypeError(f"find_errors is {describe_value(find_errors)}: give a function of a module's source")
        self.syntax, self.preamble = (
            PythonChecker(),
            preamble if not preamble or preamble[-1] == "\n" else preamble + "\n",
        )
        self.find_errors = find_errors or MypyRun(options)

    def check(self, text: str) -> Verdict:
        """Return the verdict on the beginning of a module."""
        verdict = self.syntax.check(text)
        if verdict is Verdict.COMPLETE and self.find_errors(self.preamble + text):
            return Verdict.OK
        return verdict


class MypyRun:
    """Runs mypy in this process, one module at a time, with a cache of its own."""

    def __init__(self, options: Sequence[str]) -> None:
        load_mypy()
        self.options, self.lock = tuple(options), Lock()
        self.folder = TemporaryDirectory(prefix="constrain-mypy-")

    def __call__(self, source: str) -> list[str]:
        """Return the messages of mypy about a module."""
        with self.lock:
            return find_type_errors(source, ("--cache-dir", self.folder.name, *self.options))


def find_type_errors(source: str, options: Sequence[str] = ()) -> list[str]:
    """Return the messages of mypy about a module. Raise ConstrainError if it cannot check it."""
    run = load_mypy()
    fixed = ["--config-file=", "--no-error-summary", "--hide-error-context", "--no-color-output"]
    out, errors, code = run(["-c", source, *fixed, *options])
    if code not in (0, 1):
        raise ConstrainError(f"mypy failed: {errors or out}", hint="Check the options of TypeChecker.")
    return [line for line in out.splitlines() if ": error:" in line]


def load_mypy() -> Callable[[list[str]], tuple[str, str, int]]:
    """Return the entry point of mypy; raise ConstrainError if it is not installed."""
    try:
        run: Callable[[list[str]], tuple[str, str, int]] = import_module("mypy.api").run
    except ImportError as error:
        raise ConstrainError(
            "TypeChecker needs mypy, which is not installed", hint="pip install mypy, or give find_errors=."
        ) from error
    return run
