"""Stand-ins for what the plug-in uses of SGLang 0.5.23, with the same interfaces, for machines without SGLang."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.plugins.engine_fakes import pretend_versions

__all__ = ["HOOKS", "install_sglang"]

REGISTRY: dict[str, Any] = {}
CHOICES: list[str] = []
HOOKS: list[tuple[str, Any, str]] = []


class GrammarStats:
    def __init__(self) -> None:
        self.dispatch_type: str | None = None


class GrammarRow(NamedTuple):
    row: int
    grammar: Any


class BaseGrammarObject:
    def __init__(self) -> None:
        self.finished = False
        self.grammar_stats: Any = None
        self.current_token: int | None = None

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        self.reasoning = reasoning


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message: str = "Unknown grammar error") -> None:
        super().__init__()
        self.error_message = error_message

    def copy(self) -> InvalidGrammarObject:
        return self


class BaseGrammarBackend:
    def __init__(self) -> None:
        self.cache: dict[tuple[str, str], Any] = {}

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        if "\0" in key[1] or "\\u0000" in key[1]:  # SGLang looks for it in the strings of the JSON
            return InvalidGrammarObject(f"Invalid {key[0]}: NUL bytes (\\u0000) are not allowed")
        return getattr(self, f"dispatch_{key[0]}")(key[1])


def install_sglang(monkeypatch: pytest.MonkeyPatch, version: str = "0.5.23") -> None:
    """Make the imports of the plug-in find these classes, and the plug-in itself be loaded again."""
    names = [GrammarStats, GrammarRow, BaseGrammarObject, InvalidGrammarObject, BaseGrammarBackend]
    contents = {
        "sglang": {},
        "sglang.srt": {},
        "sglang.srt.constrained": {},
        "sglang.srt.constrained.base_grammar_backend": {
            **{one.__name__: one for one in names},
            "GRAMMAR_BACKEND_REGISTRY": REGISTRY,
            "register_grammar_backend": REGISTRY.__setitem__,
        },
        "sglang.srt.plugins": {},
        "sglang.srt.plugins.hook_registry": {
            "HookRegistry": SimpleNamespace(register=lambda *hook: HOOKS.append(hook)),
            "HookType": SimpleNamespace(AFTER="after"),
        },
        "sglang.srt.server_args": {"add_grammar_backend_choices": CHOICES.extend, "GRAMMAR_BACKEND_CHOICES": CHOICES},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        module.__dict__.update(content, __path__=[])
        monkeypatch.setitem(sys.modules, name, module)
    plugin = "constrain.plugins.sglang_backend"
    monkeypatch.setitem(sys.modules, plugin, ModuleType(plugin))  # so that what is loaded now is undone
    del sys.modules[plugin]
    pretend_versions(monkeypatch, sglang=version)
