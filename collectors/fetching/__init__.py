"""One address over HTTP: safe, within limits, with every way to fail named."""
