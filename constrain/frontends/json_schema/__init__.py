"""JSON Schema, drafts 4 to 2020-12: `to_grammar` makes the Grammar of all its instances, spelled as a Style says.

`reading` turns the document into nodes, each a set of keywords about one value, and says of every keyword how it is
enforced; `algebra` combines nodes into a Shape for each literal set and knows what is empty, with one room for each
type of value: `numbers`, `strings`, `arrays`, `objects`. `emit` and these rooms write nodes of the Grammar. `front` is
the pipeline.
"""

from __future__ import annotations

from .emission.schema_pipeline import to_grammar
from .reading.keywords import KEYWORDS, Keyword
from .reports.keyword_report import KeywordRow, describe_keywords

__all__ = ["KEYWORDS", "Keyword", "KeywordRow", "describe_keywords", "to_grammar"]
