"""Everything that is compiled: flat int32 arrays in, ints out.

    layout      where every number stands (no code)          views      slots of a context as pointers
    names  points  objects  stacks  closure  keys  sets      the machine: a set of configurations and a byte -> a set
    leaves                                                   characters as bytes: decoder x Dfa
    parse                                                    scanner and LALR table: a list of lexemes and a byte -> one
    trie                                                     the vocabulary; rows and remainders of leaf states
    walk  lexemes  masks                                     tokens a set takes; masks, and other questions of a Matcher
    draws                                                    a row of a model under a mask: sums, and tokens by chance

numba keeps compiled kernels on disk, each by the text of its own file: after an edit of a file that another one calls,
the other's old code would still run. So each file holds a STAMP, a digest of all kernel files it imports; a test
compares, and `python -m constrain.kernels` writes them anew.
"""
