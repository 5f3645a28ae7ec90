"""Pages whose text needs JavaScript."""
