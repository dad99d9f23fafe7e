"""The benchmarks: a command for every figure in README and docs, one module for each question; see bench/README.md."""
