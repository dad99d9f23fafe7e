"""Kernels for NVIDIA cards, by numba's CUDA target: flat arrays, written in place, and nothing waits for the host.

    device      the one file in which the card and numba's simulator differ: bits of floats, a store of 16 bytes
    apply       a batch of logits under packed masks: bits are read, and only what is masked is written
    order       floats and token ids as one number: which token comes first
    look        the tokens of a row under its mask, four at a time
    philox_generator  random numbers that are a function of (seed, step): Philox4x32-10
    block       sums, maxima and prefix sums of one block of threads
    select      the k-th of V in an order, or where their mass reaches a goal: by counting, without sorting
    sample      mask, temperature, top-k, top-p, min-p to one token, its log-probability and the feasible mass
    race        the first few tokens of a race by the clocks of `sampling.exponential_race`, for rejection sampling
    automaton   a step of constraints whose token automaton lies on the card

Rows of logits come as the bits of their floats: int32 for float32, int16 for bfloat16 and float16, flat, with a
stride. Each kernel is a pure function of its arguments, bit for bit the same in whatever order blocks and threads run.
With NUMBA_ENABLE_CUDASIM=1 they run without a card: so they are tested.
"""
