"""Plugin of pytest: tests run on numba's own compilation of the kernels, in place of the library.

python -m pytest -p tests.numba_plugin tests/kernels tests/engine
"""

from __future__ import annotations

from functools import cache

from constrain.kernels.native import native_library

from .numba_kernels import compile_by_numba

native_library.list_functions = cache(compile_by_numba)
