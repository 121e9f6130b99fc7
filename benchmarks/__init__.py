"""Measurements of lhtree and its peers; each prints and stores JSON lines."""
