"""The commands of the ``s2l`` program, one module each, imported when called."""
