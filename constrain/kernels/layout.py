"""All constants of the memory layout in one namespace, for callers that address records by `layout.NAME`.

    context_layout   slots of a context, its headers, status codes
    program_layout   instructions, operands, blocks of strings, objects and parsers
    record_layout    records of a state cache
    table_layout     records of a MaskTable

Kernels import the constants that they use by name, from the module that defines them.
"""

from .context_layout import *  # noqa: F403
from .program_layout import *  # noqa: F403
from .record_layout import *  # noqa: F403
from .table_layout import *  # noqa: F403
