"""Guards: what the machine asks about values that must differ. `questions` answers; the rest is what it needs."""

from .questions import Memory, name, verdict, watch, way

__all__ = ["Memory", "name", "verdict", "watch", "way"]
