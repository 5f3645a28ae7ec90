"""Replays at several rates, and the search for the highest that meets objectives."""
