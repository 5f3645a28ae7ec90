"""Email addresses and phone numbers, found by email-validator and phonenumbers."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from s2l.workloads.errors import TraceError
from s2l.workloads.scrubbing.errors import ScrubberMissing
from s2l.workloads.scrubbing.finding import EMAIL, PHONE, Finding

_AROUND_AT: Final = re.compile(
    r"[^\s@<>()\[\]{},;:\"'`|\\/?=&]{1,64}@[^\s@<>()\[\]{},;:\"'`|\\/?=&#]{3,253}"
)
"""What may be an address; the validator decides."""

_DIGITS: Final = re.compile(r"\+|\d{3}")


def emails_in(text: str) -> Iterator[Finding]:
    """Addresses that could be written to; whether they exist is not asked."""
    if "@" not in text:
        return
    try:
        from email_validator import EmailNotValidError, validate_email
    except ModuleNotFoundError:
        raise _missing("email-validator") from None
    for match in _AROUND_AT.finditer(text):
        address = match[0].rstrip(".!-_")
        try:
            validate_email(address, check_deliverability=False, allow_quoted_local=False)
        except EmailNotValidError:
            continue
        yield Finding(match.start(), match.start() + len(address), EMAIL)


def phones_in(text: str, regions: Sequence[str] = ()) -> Iterator[Finding]:
    """Valid numbers: international ones, and those as they are dialled in ``regions``."""
    if not _DIGITS.search(text):
        return
    try:
        from phonenumbers import Leniency, PhoneNumberMatcher
    except ModuleNotFoundError:
        raise _missing("phonenumbers") from None
    for region in regions or (None,):
        # The library stops after so many numbers that it tried in vain: texts are long here.
        tries = max(65_535, len(text))
        for match in PhoneNumberMatcher(text, region, Leniency.VALID, tries):
            yield Finding(match.start, match.end, PHONE)


def check_regions(regions: Sequence[str]) -> None:
    """Raise TraceError for a region that has no phone numbers."""
    if not regions:
        return
    try:
        from phonenumbers import SUPPORTED_REGIONS
    except ModuleNotFoundError:
        raise _missing("phonenumbers") from None
    for region in regions:
        if region not in SUPPORTED_REGIONS:
            raise TraceError(f"{region!r} is no region; give two capital letters, such as DE or US")


def _missing(package: str) -> ScrubberMissing:
    return ScrubberMissing(f"{package} is not installed; scrubbing needs: pip install 's2l[scrub]'")
