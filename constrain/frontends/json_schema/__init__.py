"""JSON Schema, drafts 4 to 2020-12: `to_grammar` makes the Grammar of all its instances, spelled as a Style says.

`reading` turns the document into nodes, each a set of facts about one value, and says of every keyword how it is
enforced; `algebra` combines nodes into a Shape for each literal set and knows what is empty, with one room for each
type of value: `numbers`, `strings`, `arrays`, `objects`. `emit` and these rooms write nodes of the Grammar. `front` is
the pipeline.
"""

from __future__ import annotations

from .reading.keyword_report import Row, describe
from .reading.keywords import KEYWORDS, Keyword
from .schema_pipeline import to_grammar

__all__ = ["KEYWORDS", "Keyword", "Row", "describe", "to_grammar"]
