"""The store: what was made once is there the next time, in this process or in a later one.

    recent     Constraints compiled last in this process: compiling an equal source again is looking it up
    programs   what texts of a source have needed of it, on disk: the first mask of a later process needs no front end
    tables     prepared vocabularies on disk: rows, remainders and tries
    files      where the files are, whose they must be, how they come to be whole, how many are kept
    writing    a moment later, behind the user's back          asked    what was asked for, spelled out

The folder is `~/.cache/constrain`; the environment variable CONSTRAIN_STORE names another, or "off". In a process,
`recent.most = 0` and `programs.most = 0` switch those two off, and `recent.clear()` forgets. Files may be removed at
any time. Nothing in them is ever executed; only files that this user alone can have written are read.
"""

from .asked import asked, copied
from .files import folder
from .programs import Programs
from .recent import Recent
from .tables import prepare, table_of

__all__ = ["Programs", "Recent", "asked", "copied", "folder", "prepare", "programs", "recent", "table_of"]

recent = Recent()
programs = Programs()
