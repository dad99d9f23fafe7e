"""Structural tags: XGrammar's JSON description of answers that mix free text with structured parts.

    constrain.structural_tag({"type": "structural_tag", "format": {
        "type": "triggered_tags", "triggers": ["<function="],
        "tags": [{"begin": "<function=f>", "content": {"type": "json_schema", "json_schema": S}, "end": "</function>"}]
    }})

A format describes a piece of text, and formats nest. This module reads each of them as a Form; `format_elements` checks
their fields, and `xml_arguments` has the styles that write arguments as XML. The meaning is that of XGrammar 0.2.8:

- Free text (`any_text`, `triggered_tags`) directly or indirectly within a `tag` contains none of the tag's end texts;
  `any_tokens`, `exclude_token` and `token_triggered_tags` exclude its end token.
- `triggered_tags` and `dispatch` begin the format of a trigger where the trigger is first completed.

Parts of texts that look like special tokens (`<think>`, `<|call|>`, `[TOOL_CALLS]`) are the special token of that name,
if the vocabulary has it, and this text otherwise; see `forms.free_text_forms`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any, Literal as OneOf

from ..base.errors import SchemaError, UnsupportedError, check_choice, check_type
from ..base.json_documents import load_document
from ..base.options import Style
from ..forms import Form, free_text, gbnf, json_schema, literal, mark, regex
from ..forms.free_text_forms import unconstrained
from ..forms.token_forms import OneToken, PlacedForm
from .closed_schemas import close_schema
from .format_elements import FORMATS, Element
from .xml_arguments import XML_STYLES, build_xml_form

__all__ = ["structural_tag"]

SPECIAL_NAME = re.compile(r"<[^<>\s=\"']+>|\[/?[A-Z][A-Z_]*\]")
"""What the special tokens of chat models look like."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The end of the nearest enclosing tag, which free text in it excludes, and the options of the call."""

    texts: tuple[str, ...]
    tokens: tuple[str | int, ...]
    style: Style
    undeclared: OneOf["refuse", "allow"]


def structural_tag(
    source: Mapping[str, Any] | str, *, style: Style = Style(), undeclared: OneOf["refuse", "allow"] = "refuse"
) -> Form:
    """Return the form of the texts that a structural tag describes.

    Parameters
    ----------
    source : dict or str
        `{"type": "structural_tag", "format": {...}}`, or the older
        `{"structures": [{"begin", "schema", "end"}, ...], "triggers": [...]}`, as a Python value or JSON text.
    style : Style
        Spelling of JSON values.
    undeclared : {"refuse", "allow"}
        "refuse": as in XGrammar, objects and arrays of a JSON Schema have no other members than the schema declares,
        unless it has `additionalProperties`, `unevaluatedProperties` or their counterparts for arrays. "allow": as JSON
        Schema says, they may have others.

    Returns
    -------
    Form

    Raises
    ------
    SchemaError
        If a field is missing, unknown or has the wrong type, with its JSON pointer.
    UnsupportedError
        If a format has an option that constrain does not enforce, with its JSON pointer.
    """
    if not isinstance(source, (Mapping, str)):
        check_type("source", source, dict, "give a structural tag as a dict or as JSON text")
    check_type("style", style, Style, "give a constrain.Style")
    check_choice("undeclared", undeclared, ("refuse", "allow"))
    document = load_document(dict(source) if isinstance(source, Mapping) else source)
    if not isinstance(document, dict):
        raise SchemaError("a structural tag is an object", pointer="", hint='Give {"type": "structural_tag", ...}.')
    around = Surroundings((), (), style, undeclared)
    if "structures" in document or "triggers" in document:
        return read_older_tag(document, around)
    top = Element(document, "", "structural_tag")
    return read_format(top.element("format"), around)


def read_older_tag(document: dict[str, Any], around: Surroundings) -> Form:
    """Return the form of structures and triggers: triggered tags with a JSON Schema each."""
    top = Element({"type": "structural_tag", **document}, "", "structures")
    tags = []
    for k, one in enumerate(top.members("structures")):
        part = Element(one, f"/structures/{k}", "structure")
        schema = part.body["schema"]
        content = {"type": "json_schema", "json_schema": load_document(schema) if isinstance(schema, str) else schema}
        places = {"content": f"{part.pointer}/schema"}
        tags.append(Element({**part.body, "content": content}, part.pointer, "structure_tag", places))
    return dispatch_tags(top.texts("triggers"), tags, top, around)


def read_format(element: Element, around: Surroundings) -> Form:
    """Return the form of a format."""
    return READERS[element.kind](element, around)


# ---- text


def read_const_string(element: Element, around: Surroundings) -> Form:
    return marked_text(element.text("value"))


def marked_text(text: str) -> Form:
    """Return the form of a text in which special tokens, if the vocabulary has them, are tokens of their own."""
    return mark(text) if SPECIAL_NAME.search(text) else literal(text)


def read_json_schema(element: Element, around: Surroundings) -> Form:
    schema, pointer = element.schema("json_schema"), f"{element.pointer}/json_schema"
    kind = element.choice("style", ("json", *XML_STYLES, *OTHER_STYLES), "json")
    if kind in OTHER_STYLES:
        raise UnsupportedError(
            f"the style {kind!r} of a json_schema format is not supported",
            pointer=f"{element.pointer}/style",
            hint=f"The styles are json, {', '.join(XML_STYLES)}; other layouts can be written as tags and sequences.",
        )
    element.refuse("excludes", "describe the strings with `pattern` in the schema")
    schema = close_schema(schema) if around.undeclared == "refuse" else schema
    if kind != "json":
        for name in ("any_order", "max_whitespace_cnt"):
            element.refuse(name, "use it with the style json")
        return PlacedForm(build_xml_form(schema, XML_STYLES[kind], around.style), pointer)
    style = replace(around.style, key_order="any") if element.flag("any_order") else around.style
    most_spaces = element.count("max_whitespace_cnt", None, 1)
    if most_spaces is None:
        return PlacedForm(json_schema(schema, style=style), pointer)
    spaces = f"[ \\t\\n\\r]{{0,{most_spaces}}}"
    bounded = regex(rf'(?:{spaces}(?:[^ \t\n\r"]|"(?:[^"\\]|\\.)*"))*{spaces}')
    return PlacedForm(json_schema(schema, style=replace(style, whitespace="any")) & bounded, pointer)


OTHER_STYLES = ("minimax_m3_xml", "deepseek_v4_1_xml", "cohere_xml", "kimi_k3_xml")


def read_qwen_parameters(element: Element, around: Surroundings) -> Form:
    schema = element.schema("json_schema")
    schema = close_schema(schema) if around.undeclared == "refuse" else schema
    form = build_xml_form(schema, XML_STYLES["qwen_xml"], around.style)
    return PlacedForm(form, f"{element.pointer}/json_schema")


def read_grammar(element: Element, around: Surroundings) -> Form:
    return PlacedForm(gbnf(element.text("grammar"), dialect="xgrammar"), f"{element.pointer}/grammar")


def read_regex(element: Element, around: Surroundings) -> Form:
    return PlacedForm(regex(element.text("pattern")), f"{element.pointer}/pattern")


def read_any_text(element: Element, around: Surroundings) -> Form:
    excluded = tuple(dict.fromkeys((*element.texts("excludes"), *around.texts)))
    most_tokens = element.count("max_tokens", None)
    if most_tokens is not None and (excluded or element.body.get("max_chars") is not None):
        raise UnsupportedError(
            "max_tokens of a text that also excludes texts or counts characters is not supported",
            pointer=f"{element.pointer}/max_tokens",
            hint="Use max_chars, or any_tokens with max_tokens before an end token.",
        )
    if most_tokens is not None:
        return OneToken((), True).repeat(0, most_tokens)
    most = element.count("max_chars", None)
    return unconstrained(excluded) if most is None else free_text(0, most, without=excluded)


# ---- combinations


def read_sequence(element: Element, around: Surroundings) -> Form:
    forms = [read_format(one, around) for one in element.elements("elements")]
    return reduce(lambda one, other: one + other, forms)


def read_or(element: Element, around: Surroundings) -> Form:
    return reduce(or_, [read_format(one, around) for one in element.elements("elements")])


def read_repetition(low: int, high: int | None) -> Callable[[Element, Surroundings], Form]:
    """Return the reader of a format that repeats its content."""
    return lambda element, around: read_format(element.element("content"), around).repeat(low, high)


def read_repeat(element: Element, around: Surroundings) -> Form:
    low, high = element.count("min", None), element.count("max", None, -1)
    assert low is not None and high is not None, "both are required"
    if -1 < high < low:
        raise SchemaError(f"min is {low} and max is {high}", pointer=element.pointer, hint="Use -1 for no maximum.")
    return read_format(element.element("content"), around).repeat(low, None if high < 0 else high)


# ---- tags and triggers


def read_tag(element: Element, around: Surroundings) -> Form:
    """Return the form of a tag: begin, content, end."""
    begin = element.body["begin"]
    opening = marked_text(begin) if isinstance(begin, str) else read_token(element.element("begin", "token"), around)
    return opening + read_rest(element, around)


def read_rest(element: Element, around: Surroundings, begin: str = "") -> Form:
    """Return the form of a tag after its begin, or after what a trigger leaves of it."""
    end = element.body["end"]
    content = element.element("content")
    if isinstance(end, dict):
        token = element.element("end", "token")
        inner = Surroundings((), (token.body["token"],), around.style, around.undeclared)
        closing = read_token(token, around)
    else:
        texts = element.texts("end")
        if not texts:
            raise SchemaError("a tag has no end", pointer=f"{element.pointer}/end", hint="Give one or more texts.")
        ends = tuple(text for text in texts if text)
        if content.kind in ("any_text", "triggered_tags") and not ends and content.body.get("max_chars") is None:
            raise SchemaError(
                "free text in a tag needs an end that is not empty",
                pointer=f"{element.pointer}/end",
                hint="Give the text that ends it.",
            )
        inner = Surroundings(ends, (), around.style, around.undeclared)
        closing = reduce(or_, [marked_text(text) for text in dict.fromkeys(texts)])
    return marked_text(begin) + read_format(content, inner) + closing


def read_triggered_tags(element: Element, around: Surroundings) -> Form:
    return dispatch_tags(element.texts("triggers"), element.elements("tags", "tag"), element, around)


def dispatch_tags(triggers: tuple[str, ...], tags: list[Element], element: Element, around: Surroundings) -> Form:
    """Return the form of free text in which each trigger begins one of the tags that start with it."""
    rests: dict[str, list[Form]] = {trigger: [] for trigger in triggers}
    whole = []
    for tag in tags:
        begin = tag.text("begin")
        found = [trigger for trigger in rests if begin.startswith(trigger)]
        if len(found) != 1:
            raise SchemaError(
                f"the begin {begin!r} starts with {'no trigger' if not found else 'several triggers'}",
                pointer=f"{tag.pointer}/begin",
                hint=f"It must start with exactly one of {', '.join(map(repr, triggers))}.",
            )
        rests[found[0]].append(read_rest(tag, around, begin[len(found[0]) :]))
        whole.append(marked_text(begin) + read_rest(tag, around))
    unused = next((trigger for trigger, forms in rests.items() if not forms), None)
    if unused is not None:
        raise SchemaError(f"no tag starts with the trigger {unused!r}", pointer=f"{element.pointer}/triggers")
    rules = [(trigger, reduce(or_, forms)) for trigger, forms in rests.items()]
    excluded = (*element.texts("excludes"), *around.texts)
    at_least_one, stop = element.flag("at_least_one"), element.flag("stop_after_first")
    if not at_least_one:
        return dispatch(rules, excluded, "once" if stop else "again", element)
    first = reduce(or_, whole)
    return first if stop else first + dispatch(rules, excluded, "again", element)


def dispatch(
    rules: list[tuple[str, Form]], excluded: tuple[str, ...], loop: OneOf["once", "again"], element: Element
) -> Form:
    """Return the form of free text in which each trigger is followed by its form, which then ends it or not."""
    triggers = [trigger for trigger, _ in rules]
    for text in triggers:
        others = (*(other for other in triggers if other != text), *excluded)
        inner = next((other for other in others if other in text), None)
        if not text or inner is not None:
            raise SchemaError(
                f"the trigger {text!r} "
                + ("is empty" if not text else f"contains {inner!r}, which is complete earlier"),
                pointer=element.pointer,
                hint="Give triggers that contain neither each other nor an excluded text.",
            )
    begun = reduce(or_, [unconstrained(triggers, trigger, excluded) + form for trigger, form in rules])
    free = unconstrained(triggers, None, excluded)
    return begun | free if loop == "once" else begun.repeat() + free


def read_dispatch(element: Element, around: Surroundings) -> Form:
    rules = [(text, read_format(part, around)) for text, part in element.rules("rules")]
    return dispatch(rules, element.texts("excludes"), "again" if element.flag("loop", "yes") else "once", element)


def read_separated_tags(element: Element, around: Surroundings) -> Form:
    tag = reduce(or_, [read_tag(one, around) for one in element.elements("tags", "tag")])
    form = tag
    if not element.flag("stop_after_first"):
        form = tag + (marked_text(element.text("separator")) + tag).repeat()
    return form if element.flag("at_least_one") else form.repeat(0, 1)


# ---- tokens


def read_token(element: Element, around: Surroundings) -> Form:
    return OneToken((element.token("token"),))


def read_excluded_token(element: Element, around: Surroundings) -> Form:
    return OneToken((*element.tokens("exclude_tokens"), *around.tokens), True)


def read_any_tokens(element: Element, around: Surroundings) -> Form:
    most = element.count("max_tokens", None)
    return OneToken((*element.tokens("exclude_tokens"), *around.tokens), True).repeat(0, most)


def read_token_tags(element: Element, around: Surroundings) -> Form:
    triggers = element.tokens("trigger_tokens")
    rules: dict[str | int, list[Form]] = {}
    whole = []
    for tag in element.elements("tags", "tag"):
        token = tag.element("begin", "token").token("token")
        if token not in triggers:
            raise SchemaError(f"the token {token!r} is no trigger", pointer=f"{tag.pointer}/begin")
        rules.setdefault(token, []).append(read_rest(tag, around))
        whole.append(read_tag(tag, around))
    excluded = (*element.tokens("exclude_tokens"), *around.tokens)
    pairs = [(token, reduce(or_, forms)) for token, forms in rules.items()]
    at_least_one, stop = element.flag("at_least_one"), element.flag("stop_after_first")
    if not at_least_one:
        return dispatch_tokens(pairs, (*triggers, *excluded), "once" if stop else "again")
    first = reduce(or_, whole)
    return first if stop else first + dispatch_tokens(pairs, (*triggers, *excluded), "again")


def dispatch_tokens(
    rules: list[tuple[str | int, Form]], excluded: tuple[str | int, ...], loop: OneOf["once", "again"]
) -> Form:
    """Return the form of free tokens in which each trigger is followed by its form."""
    free = OneToken(tuple(dict.fromkeys((*(token for token, _ in rules), *excluded))), True).repeat()
    begun = free + reduce(or_, [OneToken((token,)) + form for token, form in rules])
    return begun | free if loop == "once" else begun.repeat() + free


def read_token_dispatch(element: Element, around: Surroundings) -> Form:
    rules = [(token, read_format(part, around)) for token, part in element.token_rules("rules")]
    return dispatch_tokens(rules, element.tokens("exclude_tokens"), "again" if element.flag("loop", "yes") else "once")


READERS: dict[str, Callable[[Element, Surroundings], Form]] = {
    "const_string": read_const_string,
    "json_schema": read_json_schema,
    "qwen_xml_parameter": read_qwen_parameters,
    "grammar": read_grammar,
    "regex": read_regex,
    "any_text": read_any_text,
    "sequence": read_sequence,
    "or": read_or,
    "optional": read_repetition(0, 1),
    "plus": read_repetition(1, None),
    "star": read_repetition(0, None),
    "repeat": read_repeat,
    "tag": read_tag,
    "triggered_tags": read_triggered_tags,
    "dispatch": read_dispatch,
    "tags_with_separator": read_separated_tags,
    "token": read_token,
    "exclude_token": read_excluded_token,
    "any_tokens": read_any_tokens,
    "token_triggered_tags": read_token_tags,
    "token_dispatch": read_token_dispatch,
}
assert set(READERS) == set(FORMATS)
