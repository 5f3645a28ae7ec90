"""Vector search whose best passages change while it runs."""
