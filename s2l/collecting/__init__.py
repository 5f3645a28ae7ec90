"""Captures as the commands run them: in this process, or shared by several."""
