"""s2l: capture how retrieved context arrives, replay it, and report what streaming it saves."""

__version__ = "0.1.0"
