"""Captures: the parts of a finished text that the named forms of its constraint matched.

    form = "Name: " + constrain.regex(r"\\w+").named("name") + ...     Form.named gives a part of a form a name
    program = build_capture_program(form, vocabulary)                 before generation: checks, one Constraint per leaf
    find_captures(program, data)                                      after generation: the spans of all names

The program is that of a backtracking matcher (Thompson 1968; Cox 2009, "Regular Expression Matching: the Virtual
Machine Approach") whose characters are whole forms: schemas, patterns, grammars, each run by a Matcher. The search
visits each configuration once (as the bit-state backtracker of RE2 does), so no form makes it exponential. The decoding
loop is not involved: a text that was generated without captures and the same text with them cost the same.

*Which derivation.* Where a text can be divided among the parts of a form in several ways, the division is the one that
Perl and Python's `re` prefer: parts from left to right, of `a | b` the first alternative that leads to a match, of
`repeat` as many repetitions as possible, where a repetition beyond the least number may not be empty. A leaf of the
form (a pattern, a schema, a grammar, free text) takes as much text as it can, whatever its inner structure.
"""
