"""A real website on loopback: Python's own documentation behind published latencies."""
