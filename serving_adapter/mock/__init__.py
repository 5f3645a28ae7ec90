"""A Realtime server whose latencies are known exactly, to measure clients by."""
