"""What a workload is like, in figures."""
