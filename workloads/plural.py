"""Counts of things, in words."""


def counted(n: int, one: str, many: str | None = None) -> str:
    """``1 query``, ``12 queries``: with an ``s``, unless ``many`` says otherwise."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
