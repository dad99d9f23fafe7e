"""Table of lark's error messages and of their explanations.

A row consists of a regular expression for lark's message; the cause; the position to report, see
`GrammarFaults._locate`; and the hint. Texts may refer to the groups of the expression, and to `kind` (rule or terminal,
of `name`), `upper` (`name` in upper case), `similar` (a name that may have been meant) and `missing` (how to define or
import the missing name).
"""

from __future__ import annotations

__all__ = ["ROWS"]

ROWS: tuple[tuple[str, str, str, str], ...] = (
    (
        r"(?:Rule|Terminal) '(?P<name>[^']+)' defined more than once",
        "{kind} `{name}` is defined twice",
        "again",
        "Rename one of them. `%override {name}: ...` replaces a definition, `%extend {name}: ...` adds options to it.",
    ),
    (
        r"Cannot override a nonexisting \w+ (?P<name>\S+)",
        "%override replaces the {kind} `{name}`, but nothing of that name was defined before",
        "defined",
        "{similar}Import or define it further up, or leave %override out.",
    ),
    (
        r"Can't extend \w+ (?P<name>\S+) as it wasn't defined before",
        "%extend adds to the {kind} `{name}`, but nothing of that name was defined before",
        "defined",
        "{similar}Import or define it further up, or leave %extend out.",
    ),
    (
        r"Cannot extend \w+ with different parameters: (?P<name>\S+)",
        "%extend gives the template `{name}` other parameters than its definition",
        "again",
        "Write the same parameters in both definitions.",
    ),
    (
        r"Can't extend \w+ (?P<name>\S+) - it is abstract",
        "%extend cannot add to `{name}`, which is only declared",
        "again",
        "Define it, `{name}: ...`, instead of declaring it.",
    ),
    (
        r"Names starting with double-underscore are reserved \(Error at (?P<name>\S+)\)",
        "`{name}` starts with two underscores; such names are reserved by lark",
        "defined",
        "One underscore is allowed.",
    ),
    (
        r"Nothing was imported from grammar `(?P<name>[^`]+)`",
        "%import {name} names a grammar, but no symbol in it",
        "used",
        "Write `%import {name}.NAME`, or `%import {name} (A, B)`.",
    ),
    (
        r"Cannot import '(?P<name>[^']+)' from '(?P<file>[^']+)': Symbol already defined",
        "`{name}` is imported from {file}, but that name is already defined",
        "used",
        "Import it under another name: `%import ... -> other_name`.",
    ),
    (
        r"Rules aren't allowed inside terminals \(NonTerminal\('(?P<name>[^']+)'\) in (?P<inside>[^)]+)\)",
        "terminal {inside} uses `{name}`, which is a rule: a terminal is made of terminals, strings and patterns only",
        "used inside",
        "Write {upper} and define it as a terminal, or make a rule of {inside}, in lower case.",
    ),
    (
        r"Terminal used but not defined: (?P<name>\S+)",
        "terminal `{name}` is used but not defined",
        "used",
        "{similar}{missing}",
    ),
    (
        r"Recursion in terminal '(?P<name>[^']+)'",
        "terminal `{name}` contains itself; only rules may",
        "defined",
        "Make it a rule, in lower case, or write the repetition with `*` or `+`.",
    ),
    (
        r"Template Parameter conflicts with rule (?P<name>\S+) \(in template (?P<inside>[^)]+)\)",
        "template `{inside}` has a parameter `{name}`, and there is a rule of that name",
        "used inside",
        "Give the parameter another name.",
    ),
    (
        r"Duplicate Template Parameter (?P<name>\S+) \(in template (?P<inside>[^)]+)\)",
        "template `{inside}` has two parameters `{name}`",
        "used inside",
        "Give one of them another name.",
    ),
    (
        r"Template '(?P<name>[^']+)' used but not defined \(in \w+ (?P<inside>.+)\)",
        "template `{name}` is used but not defined",
        "used inside",
        "{similar}Define it: `{name}{{x}}: ...`",
    ),
    (
        r"Wrong number of template arguments used for (?P<name>\S+) \(expected 0, got \d+\) \(in \w+ (?P<inside>.+)\)",
        "`{name}` is not a template, but is followed by arguments in braces",
        "used inside",
        "For a repetition write `{name}~2` or `{name}~2..5`; for a template define `{name}{{x}}: ...`",
    ),
    (
        r"Wrong number of template arguments used for (?P<name>\S+) \(expected (?P<want>\d+), got (?P<got>\d+)\) "
        r"\(in \w+ (?P<inside>.+)\)",
        "template `{name}` is defined for another number of arguments: {want}, not {got}",
        "used inside",
        "Pass as many as its definition has.",
    ),
    (
        r"(?:Rule|Terminal) '(?P<name>[^']+)' used but not defined \(in \w+ (?P<inside>.+)\)",
        "{kind} `{name}` is used but not defined",
        "used inside",
        "{similar}{missing}",
    ),
    (
        r"Terminals \{'(?P<name>[^']+)'.*\} were marked to ignore but were not defined",
        "%ignore names the terminal `{name}`, which is not defined",
        "used",
        "{similar}{missing}",
    ),
    (
        r"Terminals cannot be empty \(__IGNORE",
        "%ignore has nothing to ignore",
        "empty ignore",
        "Say what: a terminal's name, a string or a pattern.",
    ),
    (
        r"Terminals cannot be empty \((?P<name>.+)\)",
        "terminal `{name}` has nothing in it",
        "defined",
        "A terminal matches at least one character. Make what uses it optional with `?` instead.",
    ),
    (
        r"Empty terminals are not allowed \((?P<literal>.+)\)",
        "the empty string cannot be a token",
        "literal",
        "Leave it out: an option without symbols, `a: b |`, is the empty text.",
    ),
    (
        r"You can only use newlines in regular expressions with the `x`",
        "a pattern continues over the end of its line",
        "long pattern",
        "Write `\\n` for a newline, or add the flag x, /.../x, with which blanks do not count.",
    ),
    (
        r"Aliasing not allowed in terminals",
        "`->` names an option of a rule, and this is a terminal",
        "arrow in terminal",
        "Leave it out, or write the terminal as a rule, in lower case.",
    ),
    (
        r"Conflicting flags for the same terminal: (?P<pattern>.+)",
        "the same text occurs in the grammar with different flags",
        "flags",
        'Define a terminal for each, `A: "text"` and `B: "text"i`, and use their names.',
    ),
    (
        r"Rule (?P<name>\S+) is marked for expansion .* isn't allowed to have aliases \(alias=(?P<alias>[^)]+)\)",
        "rule `{name}` begins with an underscore, so it has no node that `-> {alias}` could name",
        "defined",
        "Leave out the underscore or the alias.",
    ),
    (
        r"Inlined rules \(_rule\) cannot use the \?rule modifier",
        "a rule that begins with an underscore is always inlined, so `?` before it has no effect",
        "inlined",
        "Leave out the `?` or the underscore.",
    ),
    (
        r"Rules defined twice:\s+\* <(?P<name>[^ :]+) : ",
        "rule `{name}` has the same option twice, as a rule or after `?` and `[]` are spelled out",
        "defined",
        "Leave one out. `a? | a` and `[a] [a]` each contain `a` twice: write `a?` and `a~0..2`.",
    ),
    (
        r"Bad Range for .* \((?P<low>-?\d+)\.\.(?P<high>-?\d+) isn't allowed\)",
        "`~ {low}..{high}` is not a valid range of repetitions",
        "range",
        "The first number is 0 or more, and the second is not smaller.",
    ),
    (
        r"Inconsistent base_path for (?P<file>.+?)\.?$",
        "`{file}` is imported both from beside this grammar (`.{file}`) and from the library (`{file}`)",
        "import",
        "Use the same form in all imports of it.",
    ),
)
