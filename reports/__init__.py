"""Turns a run's raw times into metrics, and metrics into tables and pages."""
