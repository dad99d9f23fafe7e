"""Kernels for NVIDIA GPUs, by numba's CUDA target: flat arrays, written in place, without host synchronisation.

    cuda_device       the differences between the GPU and numba's simulator: bits of floats, threads of a warp
    cuda_launch       launches of compiled kernels by CUDA's driver, without numba's dispatcher
    cuda_apply        packed masks applied to a batch of logits: only masked logits are written
    cuda_order        floats and token ids as one sortable integer, the rank
    cuda_rows         loads of the tokens of a row under its mask, four at a time
    philox_generator  counter-based random numbers, Philox4x32-10
    cuda_block        sums, maxima and prefix sums of one warp, and of one block of threads
    cuda_tiles        loads of the tiles of a row, 1,024 tokens for a warp
    cuda_arguments    what the kernels of a draw share: their arguments, and the masses of tokens
    cuda_sample       mask, temperature, top-k, top-p, min-p to one token, its log-probability and the feasible mass
    cuda_draw         the last step of a draw: a tile by its mass, then a token of it
    cuda_cut          where top-k and top-p cut a row, for `cuda_sample`: radix selection
    cuda_select       radix selection by one block for each row, for `cuda_race`
    cuda_race         the first tokens of an exponential race (`sampling.exponential_race`), for rejection sampling
    cuda_automaton    a step of constraints whose token automaton is in GPU memory

Rows of logits come as the bits of their floats: int32 for float32, int16 for bfloat16 and float16, flat, with a
stride. Each kernel is a pure function of its arguments: the result is bitwise the same in whatever order blocks and
threads run. They are tested on a card, and with NUMBA_ENABLE_CUDASIM=1 in numba's simulator.
"""
