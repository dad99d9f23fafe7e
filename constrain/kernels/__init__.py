"""Everything that is compiled: flat int32 arrays in, ints out.

    compiled  precompile  object_cache                       how: each kernel alone, on all cores, kept in one file
    layout      where every number stands (no code)          views      slots of a context as pointers
    names  points  objects  stacks  closure  keys  sets      the machine: a set of configurations and a byte -> a set
    leaves                                                   characters as bytes: decoder x Dfa
    parse                                                    scanner and LALR table: a list of lexemes and a byte -> one
    trie                                                     the vocabulary; rows and remainders of leaf states
    walk  lexemes  masks  recipes                            tokens a set takes; masks, and how a mask is kept
    positions  doors                                         what Python calls at every token, of one text or of many
    logits                                                   masks on the logits of a model
    draws                                                    a row of a model under a mask: sums, and tokens by chance
    cuda/                                                    what runs on a card

Compiled code is kept by the text of all these files (`object_cache`), and by numba function by function, each by the
text of its own file: after an edit of a file that another one links in, the other's old code would still run. So each
file holds a STAMP, a digest of all kernel files it imports; a test compares, and `python -m constrain.kernels` writes
them.
"""
