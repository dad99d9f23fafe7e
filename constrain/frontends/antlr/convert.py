"""From ANTLR 4 to Lark: rules and terminals keep their shape, names take Lark's case.

Named and refused, with line and column: actions, predicates, arguments, modes and other lexer commands than `skip` and
`channel`, imports, `~` and `.` over tokens, Unicode properties, EOF inside a rule. Labels, `# names`, `<assoc>` and
channels only shape trees, and go.

What texts mean is then Lark's affair: where a terminal could be one of two, Lark's order of terminals decides, while
ANTLR takes the longest and then the first; and its LALR parser needs a grammar with one token of look-ahead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from ...errors import GrammarError, UnsupportedError
from .scan import Word, scan

__all__ = ["Converted", "to_lark"]

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
TREES_ONLY = {"contextSuperClass", "language", "superClass", "accessLevel", "exportMacro", "visitor", "listener"}


@dataclass(frozen=True, slots=True)
class Converted:
    """text: the Lark grammar. start: its start rule, the first parser rule of the ANTLR grammar."""

    text: str
    start: str


def to_lark(source: str) -> Converted:
    """The Lark text of an ANTLR 4 grammar. GrammarError, UnsupportedError say where and what to do."""
    return _Converter(source).convert()


class _Converter:
    def __init__(self, source: str) -> None:
        self.source = source
        self.words = scan(source)
        self.at = 0
        self.rules: list[tuple[str, str]] = []
        self.terminals: list[tuple[str, str]] = []
        self.ignored: list[str] = []
        self.declared: list[str] = []
        self.names: dict[str, str] = {}
        self.lexing = False
        self.flag = ""

    # ---- words

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def take(self, text: str | None = None) -> Word:
        word = self.word
        if text is not None and word.text != text:
            self.wrong(f"{text!r} belongs here, not {word.text!r}")
        self.at += 1
        return word

    def wrong(self, cause: str, hint: str = "") -> NoReturn:
        raise GrammarError(cause, source=self.source, position=self.word.place, hint=hint)

    def refuse(self, what: str, hint: str, place: int | None = None) -> NoReturn:
        position = self.word.place if place is None else place
        raise UnsupportedError(f"{what} cannot be converted", source=self.source, position=position, hint=hint)

    def has(self, text: str) -> bool:
        """Takes a mark if it comes."""
        found = self.word.kind in ("mark", "name") and self.word.text == text
        self.at += found
        return found

    # ---- the grammar

    def convert(self) -> Converted:
        for kind in ("lexer", "parser"):
            self.has(kind)
        self.take("grammar")
        self.take()
        self.take(";")
        while self.word.kind != "end":
            self.part()
        if not self.rules:
            self.wrong("there is no parser rule, where the text could start", "Its name begins with a small letter.")
        lines = [f"{name}: {body}".rstrip() for name, body in self.rules]
        lines += ["", *(f"{name}: {body}" for name, body in self.terminals)]
        lines += [f"%ignore {name}" for name in self.ignored]
        lines += [f"%declare {' '.join(self.declared)}"] if self.declared else []
        return Converted("\n".join(lines).replace("\n\n\n", "\n\n") + "\n", self.rules[0][0])

    def part(self) -> None:
        word = self.word
        if word.text in ("options", "tokens", "channels") and self.words[self.at + 1].kind == "block":
            self.at += 1
            getattr(self, word.text)(self.take())
        elif word.text == "@":
            self.refuse("an action", "Remove it: what code does is no grammar.")
        elif word.text == "import":
            self.refuse("an import", "Put both grammars into one text.")
        elif word.text == "mode":
            self.refuse("a lexer mode", "Write what is inside a mode as one terminal, or as rules of characters.")
        else:
            self.rule()

    def options(self, block: Word) -> None:
        for name, value in re.findall(r"(\w+)\s*=\s*([^;]+);", block.text):
            if name == "caseInsensitive":
                self.flag = "i" if value.strip() == "true" else ""
            elif name not in TREES_ONLY:
                self.refuse(f"option {name}", "Put lexer and parser into one grammar.", block.place)

    def tokens(self, block: Word) -> None:
        self.declared += [self.named(name) for name in re.findall(r"\w+", block.text)]

    def channels(self, block: Word) -> None:
        """Where hidden terminals go."""

    def rule(self) -> None:
        while self.word.text in ("protected", "public", "private"):
            self.at += 1
        fragment = self.has("fragment")
        word = self.take()
        if word.kind != "name":
            self.at -= 1
            self.wrong("a rule begins with its name")
        self.lexing = word.text[0].isupper()
        if self.word.kind == "set":
            self.refuse("an argument of a rule", "Write a rule for each value that it may have.")
        if self.word.text in ("returns", "locals", "throws"):
            self.refuse(f"`{self.word.text}`", "Remove it: it is for actions.")
        if self.word.text == "options":
            self.at += 1
            self.options(self.take())
        self.take(":")
        body = self.alternatives()
        hidden = self.lexing and self.commands()
        self.take(";")
        if self.word.text in ("catch", "finally"):
            self.refuse(f"`{self.word.text}`", "Remove it: it is for actions.")
        name = self.named(word.text)
        if not self.lexing:
            self.rules.append((name, body))
            return
        self.terminals.append((name, body))
        if hidden and not fragment:
            self.ignored.append(name)

    def commands(self) -> bool:
        """What stands behind ->: whether the terminal is ignored."""
        hidden = False
        if self.has("->"):
            while True:
                word = self.take()
                argument = ""
                if self.has("("):
                    argument = self.take().text
                    self.take(")")
                if word.text not in ("skip", "channel"):
                    self.refuse(f"the lexer command {word.text}", "Write the whole as one terminal.", word.place)
                hidden = hidden or word.text == "skip" or argument != "DEFAULT_TOKEN_CHANNEL"
                if not self.has(","):
                    break
            if self.word.text == "|":
                self.refuse("a lexer command of one alternative", "Give each alternative a terminal of its own.")
        return hidden

    def named(self, name: str) -> str:
        """A name in Lark's case: rules small, terminals large."""
        found = self.names.get(name)
        if found is None:
            split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
            wish = split.upper() if name[0].isupper() else split.lower()
            taken = set(self.names.values())
            found, count = wish, 1
            while found in taken:
                count += 1
                found = f"{wish}_{count}"
            self.names[name] = found
        return found

    # ---- bodies

    def alternatives(self) -> str:
        options = [self.sequence()]
        while self.has("|"):
            options.append(self.sequence())
        return " | ".join(options)

    def sequence(self) -> str:
        out: list[str] = []
        while True:
            word = self.word
            if word.kind == "block":
                following = self.words[self.at + 1].text
                what = "a predicate" if following == "?" else "an action"
                self.refuse(what, "Remove it: what code does is no grammar.")
            if word.text == "<":
                while self.take().text != ">":
                    pass
            elif word.text == "#":
                self.at += 2
            elif word.text == "EOF":
                self.at += 1
                if self.word.text not in (";", "|", ")", "#"):
                    self.refuse("EOF inside a rule", "A text ends where its start rule does.", word.place)
            elif word.kind == "mark" and word.text not in ("(", "~", "."):
                return " ".join(out)
            elif word.kind in ("end", "number"):
                self.wrong("this rule is never closed", "Put ; behind it.")
            else:
                out.append(self.element())

    def element(self) -> str:
        """One element with its label, which goes, and its suffix."""
        if self.word.kind == "name" and self.words[self.at + 1].text in ("=", "+="):
            self.at += 2
        first = self.at
        body = self.atom()
        suffix = self.take().text if self.word.text in ("*", "+", "?") else ""
        if suffix and self.has("?"):
            if not self.lexing:
                return body + suffix  # Which of several parses is of no matter.
            last, self.at = self.at, first
            pattern = self.pattern()
            self.at = last
            return f"/(?:{pattern}){suffix}?/{self.flag}"
        return body + suffix

    def atom(self) -> str:
        word = self.take()
        if word.text == "(":
            body = self.alternatives()
            self.take(")")
            return f"({body})"
        if word.text in ("~", "."):
            if not self.lexing:
                what = "any token but some" if word.text == "~" else "any token"
                self.refuse(what, "List the tokens that may stand here.", word.place)
            self.at -= 1
            return f"/{self.characters()}/{self.flag}"
        if word.kind == "name":
            return self.named(word.text)
        if word.kind == "set" and self.lexing:
            self.at -= 1
            return f"/{self.characters()}/{self.flag}"
        if word.kind == "text":
            if self.word.text == "..":
                self.at -= 1
                return f"/{self.characters()}/{self.flag}"
            return quoted(self.literal(word)) + self.flag
        self.at -= 1
        return self.wrong(f"{word.text!r} begins no element")

    # ---- characters

    def pattern(self) -> str:
        """The same element as a pattern of `re`, for what is repeated as seldom as possible."""
        if not self.has("("):
            if self.word.kind == "text" and self.words[self.at + 1].text != "..":
                return re.escape(self.literal(self.take())).replace("/", "\\/")
            if self.word.kind == "name":
                self.refuse("a terminal inside *? or +?", "Write its characters in place of its name.")
            return self.characters()
        out = ""
        while not self.has(")"):
            if self.has("|"):
                out += "|"
                continue
            out += f"(?:{self.pattern()})"
            if self.word.text in ("*", "+", "?"):
                out += self.take().text
        return f"(?:{out})"

    def characters(self) -> str:
        """A class of `re`: [..], 'a'..'z', ., or ~ before one of these or several."""
        if self.has("."):
            return r"[\s\S]"
        if not self.has("~"):
            return f"[{self.members()}]"
        if not self.has("("):
            return f"[^{self.members()}]"
        members = self.members()
        while self.has("|"):
            members += self.members()
        self.take(")")
        return f"[^{members}]"

    def members(self) -> str:
        """What stands inside of a class."""
        word = self.take()
        if word.kind == "text":
            low = high = self.single(word)
            if self.has(".."):
                high = self.single(self.take())
            return spelled(low) + ("-" + spelled(high) if high != low else "")
        if word.kind != "set":
            self.refuse("~ before this", "Write the characters as a set: ~[abc].", word.place)
        return self.ranges(word)

    def ranges(self, word: Word) -> str:
        if re.search(r"\\[pP]\{", word.text):
            self.refuse("a Unicode property", "Write its characters as ranges.", word.place)
        out, text = "", word.text[1:-1]
        for found in re.finditer(CHARACTER, text):
            one = found[0]
            edge = found.start() in (0, len(text) - 1)
            out += "-" if one == "-" and not edge else spelled(unescaped(one))
        if not out:
            self.refuse("an empty set", "Name the characters.", word.place)
        return out

    def literal(self, word: Word) -> str:
        text = "".join(unescaped(found[0]) for found in re.finditer(CHARACTER, word.text[1:-1]))
        if not text:
            self.refuse("an empty literal", "Leave it out.", word.place)
        return text

    def single(self, word: Word) -> str:
        text = self.literal(word) if word.kind == "text" else ""
        if len(text) != 1:
            self.refuse("a range or ~ of more than one character", "Give single characters.", word.place)
        return text


CHARACTER = re.compile(r"\\u\{[0-9a-fA-F]+\}|\\u[0-9a-fA-F]{4}|\\.|.", re.S)


def unescaped(text: str) -> str:
    """The character that one of ANTLR's spellings stands for."""
    if not text.startswith("\\"):
        return text
    if text[1] == "u":
        return chr(int(text[2:].strip("{}"), 16))
    return ESCAPES.get(text[1], text[1])


def spelled(char: str) -> str:
    """A character inside a class of `re`, in Lark text."""
    if char.isascii() and (char.isalnum() or char in " _"):
        return char
    if 32 < ord(char) < 127:
        return "\\" + char
    return (
        f"\\x{ord(char):02x}"
        if ord(char) < 256
        else f"\\u{ord(char):04x}"
        if len(hex(ord(char))) < 7
        else f"\\U{ord(char):08x}"
    )


def quoted(text: str) -> str:
    """A literal of Lark's."""
    marked = ("\\" + char if char in '"\\' else char if 32 <= ord(char) < 127 else spelled(char) for char in text)
    return '"' + "".join(marked) + '"'
