"""A server of both protocols whose latencies are known exactly, to measure clients by."""
