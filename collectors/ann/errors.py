"""What can be wrong with a corpus, a model or an index."""


class AnnError(Exception):
    """Its text is one line that says what is wrong and what would be right."""


class SearchFailed(AnnError):
    """The system ended a search; nothing that was given is wrong."""


INSTALL = "pip install 's2l[ann]'"


def missing(package: str) -> AnnError:
    """The error for a package that is not installed."""
    return AnnError(f"{package} is not installed; install it with: {INSTALL}")
