"""Checkers of texts while they are written: a function of the text so far answers ok, dead or complete.

    VerdictChecker(vocabulary, checker)    any TextChecker as a `sampling.Checker`, for samplers and beams
    PrefixChecker(function)                a function of the text so far as a TextChecker
    SqliteChecker, PythonChecker, TypeChecker

`constrain.generate(check=...)` takes a TextChecker as it is. The idea is that of PICARD (Scholak et al. 2021).
"""

from __future__ import annotations

from .python_checker import PythonChecker
from .sqlite_checker import SqliteChecker
from .type_checker import TypeChecker
from .verdicts import PrefixChecker, TextChecker, Verdict, VerdictChecker

__all__ = [
    "PrefixChecker",
    "PythonChecker",
    "SqliteChecker",
    "TextChecker",
    "TypeChecker",
    "Verdict",
    "VerdictChecker",
]
