"""Synthetic workloads: shapes, and texts of exact lengths."""
