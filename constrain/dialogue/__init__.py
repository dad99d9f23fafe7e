"""Dialogue: tool calls, in the envelopes that models write them in.

`definitions` reads what tools there are, `envelopes/` has one file for each way to write a call and to read it again,
`tools` makes a Form of both.
"""

from .envelope import ToolCall
from .envelope_table import ENVELOPES
from .tool_definitions import Tool, read_tools
from .tool_forms import tool_calls, tools

__all__ = ["ENVELOPES", "Tool", "ToolCall", "read_tools", "tool_calls", "tools"]
