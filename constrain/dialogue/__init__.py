"""Tool calls, in the formats (envelopes) of different model families.

`tool_definitions` reads tool definitions, `envelope_table` lists the envelopes (one module per format to write and read
calls), and `tool_forms` combines both into a Form.
"""

from .envelope import ToolCall
from .envelope_table import ENVELOPES
from .tool_definitions import Tool, read_tools
from .tool_forms import tool_calls, tools

__all__ = ["ENVELOPES", "Tool", "ToolCall", "read_tools", "tool_calls", "tools"]
