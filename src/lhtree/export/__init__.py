"""Fitted models in other forms."""

from lhtree.export.graphviz import export_graphviz
from lhtree.export.text import export_text

__all__ = ["export_graphviz", "export_text"]
