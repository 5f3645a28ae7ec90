"""Traces made fit to be shared: what is hidden, scrubbed, taken down, and filled back in."""
