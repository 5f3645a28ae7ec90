"""A static site of runs: an index, every report, a card for each trace, and a feed."""
