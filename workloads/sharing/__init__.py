"""Packing, pushing and pulling traces, and looking at a stranger's before it is used."""
