"""Fitted models for other programs: ONNX, C, SQL, Graphviz and text."""

from lhtree.export.c import to_c
from lhtree.export.graphviz import export_graphviz
from lhtree.export.onnx import to_onnx
from lhtree.export.sql import to_sql
from lhtree.export.text import export_text

__all__ = ["export_graphviz", "export_text", "to_c", "to_onnx", "to_sql"]
