"""Replays as the commands run them: what was asked for, who is measured, what is shown."""
