"""Guards: what the machine asks about values that must differ. `questions` answers; the rest is what it needs."""

from .repeated_members import copies_after
from .uniqueness_queries import Memory, name, verdict, watch, way

__all__ = ["Memory", "copies_after", "name", "verdict", "watch", "way"]
