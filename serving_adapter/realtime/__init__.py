"""The text part of the OpenAI Realtime API: a client, and a server over any engine."""
