"""The library of compiled kernels: found, loaded, and kept where it was compiled. Needs neither numba nor llvmlite."""
