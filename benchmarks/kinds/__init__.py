"""Kinds of measurements: what lists their jobs, and what measures one job."""
