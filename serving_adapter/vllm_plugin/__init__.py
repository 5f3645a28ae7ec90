"""The endpoint plugin that gives stock vLLM a Realtime WebSocket."""
