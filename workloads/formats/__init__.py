"""Outside formats: one module each, and one registry."""
