"""The versions of transformers with which models are run here.

Version 4 is refused: its caches cannot be shared by the texts of a batch, and its `generate` calls a logits processor
once more after all texts have ended. With 4.57, 12 tests of `tests/integrations/` fail.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..base.errors import UnsupportedError

__all__ = ["TRANSFORMERS", "check_transformers_version", "name_cache_argument", "split_version"]

TRANSFORMERS = ("5.0", "6")
"""The least version, and the first one that has not been tested. Equal to the requirement in pyproject.toml."""


def check_transformers_version() -> None:
    """Raise UnsupportedError if transformers is installed in a version outside `TRANSFORMERS`."""
    least, below = TRANSFORMERS
    try:
        found = version("transformers")
    except PackageNotFoundError:
        return  # whoever imports it reports that
    if not split_version(least) <= split_version(found) < split_version(below):
        raise UnsupportedError(
            f"transformers {found} is installed, and constrain runs models with {least} up to, but not, {below}",
            hint=f'pip install "transformers>={least},<{below}"',
        )


def name_cache_argument(model: Any) -> str:
    """Return the name of the argument of `model.forward` that takes the key-value cache: `cache` since version 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def split_version(text: str) -> tuple[int, ...]:
    """Return the release segment of a version: "0.5.23rc1" -> (0, 5, 23)."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()
