"""Arrival processes: when queries start, as pure arithmetic on seeds, rates and recorded times."""
