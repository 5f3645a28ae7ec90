"""Talks to servers that take streamed context: clients, the vLLM plugin, the engine launcher."""
