"""A small real website to crawl offline: Python's own documentation, made slow."""
