"""Benchmarks of lhtree and its peers: data, models, run, report."""
