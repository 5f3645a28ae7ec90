"""Replays a trace against a server at a controlled rate and writes down what happened when."""
