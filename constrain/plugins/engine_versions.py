"""The versions of the engines with which the plug-ins were tested.

Interfaces of engines change between minor versions, some of them without notice. A version outside these bounds is
refused when the plug-in is loaded, rather than found out by a text that was not constrained.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ..base.errors import UnsupportedError
from ..integrations.transformers_versions import split_version

__all__ = ["ENGINE_VERSIONS", "check_engine_version"]

ENGINE_VERSIONS: dict[str, tuple[str, str]] = {
    "llama-cpp-python": ("0.3.9", "0.4"),
    "mlx-lm": ("0.32", "0.33"),
    "sglang": ("0.5.20", "0.6"),
    "transformers": ("5.23", "5.24"),
    "vllm": ("0.32", "0.34"),
}
"""Package -> the least version, and the first one that has not been tested. For transformers, `continuous_batching`
alone is bound by it."""


def check_engine_version(package: str) -> str:
    """Return the version of an engine. Raise UnsupportedError if it is not installed, or outside `ENGINE_VERSIONS`."""
    least, below = ENGINE_VERSIONS[package]
    try:
        found = version(package)
    except PackageNotFoundError:
        raise UnsupportedError(
            f"{package} is not installed", hint=f"pip install '{package}>={least},<{below}'"
        ) from None
    if not split_version(least) <= split_version(found) < split_version(below):
        raise UnsupportedError(
            f"{package} {found} has not been tested with this plug-in, which knows {least} up to, but not, {below}",
            hint=f"pip install '{package}>={least},<{below}', or a newer constrain.",
        )
    return found
