"""Rules as people write them become rules as the machine likes them, whatever language they were written in.

`tidy` drops what has no text, turns rules that only repeat into repetitions (`linear`), and makes one Dfa of what is
regular (`regular`). The language stays the same.
"""

from .productive import texts_begin, without_dead_ends
from .tidy import tidy

__all__ = ["texts_begin", "tidy", "without_dead_ends"]
