"""The kinds of index."""
