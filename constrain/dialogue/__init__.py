"""Tool calls, in the formats (envelopes) of different model families.

`tool_definitions` reads tool definitions, `envelope_table` lists the envelopes (one module per format to write and read
calls), and `tool_forms` combines both into a Form. `structural_tags` reads XGrammar's JSON description of answers with
structured parts.
"""

from .envelope import ToolCall
from .envelope_table import ENVELOPES
from .structural_tags import structural_tag
from .tool_definitions import Tool, read_tools
from .tool_forms import tool_calls, tools

__all__ = ["ENVELOPES", "Tool", "ToolCall", "read_tools", "structural_tag", "tool_calls", "tools"]
