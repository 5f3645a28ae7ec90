"""Client for chat and completions endpoints of any OpenAI-compatible server."""
