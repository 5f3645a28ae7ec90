"""The small model and the engine that run on any machine."""
