"""ANTLR grammars become Lark text that lark reads, and what cannot be converted is named."""

from __future__ import annotations

import lark
import pytest

from constrain.errors import ConstrainError, GrammarError, UnsupportedError
from constrain.frontends.antlr import to_lark

JSON = r"""
/** as on json.org */
grammar JSON;
options { language = Java; }
json : value EOF ;
obj  : '{' pair (',' pair)* '}' | '{' '}' ;
pair : key=STRING ':' value ;
arr  : '[' items+=value (',' items+=value)* ']' # Some
     | '[' ']' # None
     ;
value : STRING | numberValue | obj | arr | 'true' | 'false' | 'null' ;
numberValue : <assoc=right> Number ;
STRING : '"' (ESC | SAFECODEPOINT)* '"' ;
fragment ESC : '\\' (["\\/bfnrt] | UNICODE) ;
fragment UNICODE : 'u' HEX HEX HEX HEX ;
fragment HEX : [0-9a-fA-F] ;
fragment SAFECODEPOINT : ~ ["\\\u0000-\u001F] ;
Number : '-'? INT ('.' [0-9] +)? EXP? ;
fragment INT : '0' | [1-9] [0-9]* ;
fragment EXP : [Ee] [+\-]? [0-9]+ ;
LINE_COMMENT : '//' ~[\r\n]* -> channel(HIDDEN) ;
COMMENT : '/*' .*? '*/' -> skip ;
WS : [ \t\n\r] + -> skip ;
"""


def accepts(source: str, text: str) -> bool:
    made = to_lark(source)
    parser = lark.Lark(made.text, parser="lalr", start=made.start)
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "inside", "outside"),
    [
        (
            JSON,
            ['{"a": [1, -2.5e3, true], "é\\u00e9": {}}', "[] // x\n/* a * / b */", '"\\""'],
            ["[1,]", "01", "{'a': 1}", '"\t"', "/* x"],
        ),
        (
            "grammar E; e : e '*' e | e '+' e | '(' e ')' | N; N : '0'..'9'+; S : ' ' -> skip;",
            ["1 + 2*(3)"],
            ["1+", "a"],
        ),
        (
            "grammar C; options { caseInsensitive = true; } s : 'Select' [a]? ID; ID : [a-z]+ ; W : ' ' -> skip ;",
            [],
            [],
        ),
        (
            "grammar C; options { caseInsensitive = true; } s : 'Select' ID; ID : [a-z]+ ; W : ' ' -> skip ;",
            ["SELECT x"],
            ["x"],
        ),
        ("grammar N; s : A B? ; A : ~('a'|'b') ; B : ~'c' 'x'..'z' ;", ["c", "cay"], ["a", "ccy", "caa"]),
        (r"grammar U; s : A+ ; A : '\u00e9' | '\u{1F600}' | [\]\-a\\] | '\'' ;", ["é😀]-a\\'"], ["b"]),
        ("grammar L; s : A ; A : '<' ('a' | [b-c])*? 'c' ;", ["<abc", "<c"], ["<ab", "<cc"]),
        ("grammar Empty; s : ( 'a' | ) 'b' ;", ["ab", "b"], ["a"]),
    ],
)
def test_what_is_converted(source: str, inside: list[str], outside: list[str]) -> None:
    if "[a]?" in source:
        with pytest.raises(GrammarError, match="begins no element"):
            to_lark(source)
        return
    for text in inside:
        assert accepts(source, text), (text, to_lark(source).text)
    for text in outside:
        assert not accepts(source, text), (text, to_lark(source).text)


@pytest.mark.parametrize(
    ("source", "line", "column", "cause"),
    [
        ("grammar G; s : 'a' { x(); } ;", 1, 20, "an action"),
        ("grammar G;\ns : { p() }? 'a' ;", 2, 5, "a predicate"),
        ("grammar G; s[int n] : 'a' ;", 1, 13, "an argument"),
        ("grammar G; s returns [int n] : 'a' ;", 1, 14, "returns"),
        ("grammar G; @header { x } s : 'a' ;", 1, 12, "an action"),
        ("grammar G; import H; s : 'a' ;", 1, 12, "an import"),
        ("grammar G; s : A ; A : 'a' -> pushMode(X) ; mode X ; B : 'b' ;", 1, 31, "pushMode"),
        ("grammar G; s : A ; A : 'a' ; mode X ; B : 'b' ;", 1, 30, "a lexer mode"),
        ("grammar G; s : ~A ; A : 'a' ;", 1, 16, "any token but some"),
        ("grammar G; s : . ;", 1, 16, "any token"),
        ("grammar G; s : A ; A : [\\p{L}] ;", 1, 24, "a Unicode property"),
        ("grammar G; s : EOF 'a' ;", 1, 16, "EOF inside"),
        ("parser grammar G; options { tokenVocab = L; } s : A ;", 1, 27, "option tokenVocab"),
        ("grammar G; s : A ; A : B*? ; B : 'b' ;", 1, 24, "a terminal inside"),
    ],
)
def test_what_cannot_be_converted_is_named(source: str, line: int, column: int, cause: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        to_lark(source)
    assert cause in caught.value.cause and caught.value.hint
    assert f"line {line}, column {column}\n" in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "source",
    ["grammar G; s : 'a'", "grammar G", "grammar G; A : 'a' ;", "grammar G; s : (A ;", "$", "grammar G; s : { x"],
)
def test_what_is_no_grammar(source: str) -> None:
    with pytest.raises(ConstrainError) as caught:
        to_lark(source)
    assert caught.value.position is not None
