"""One replay sent by several processes, on this machine or on a cluster."""
