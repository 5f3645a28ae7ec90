"""Runs against each other, paired by query."""
