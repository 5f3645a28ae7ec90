"""Keys and tokens, found by detect-secrets; the one place that imports it."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from s2l.workloads.scrubbing.errors import ScrubberMissing
from s2l.workloads.scrubbing.finding import KEY, TOKEN, Finding

_LEFT_OUT: Final = frozenset({"Public IP (ipv4)"})
"""An address of a machine is no secret, and version numbers look like one."""

_KEY_WORDS: Final = ("key", "hmac", "storage")
_PRIVATE: Final = "Private Key"
_PASSWORD: Final = "Basic Auth Credentials"
_REST: Final = re.compile(r"[A-Za-z0-9_+/=-]*")
_KEY_BODY: Final = re.compile(r"[\sA-Za-z0-9+/=:,\\-]*?-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----")
_KEY_REST: Final = re.compile(r"(?:[ \t]*-*\s*[A-Za-z0-9+/=]{16,})*")
"""A detector knows a private key by its first line; what follows it is the secret."""


def secrets_in(text: str) -> Iterator[Finding]:
    """Keys and tokens of known forms, and whole private keys."""
    for detector in _by_form():
        kind = _kind(detector.secret_type)
        for pattern in detector.denylist:
            for match in pattern.finditer(text):
                if detector.secret_type == _PRIVATE:
                    start = len(text[: match.start()].rstrip("-"))
                    yield Finding(start, _private_key_end(text, match.end()), KEY)
                else:
                    yield Finding(*_span(detector.secret_type, match), kind)


def is_secret_parameter(name: str, value: str) -> bool:
    """Whether an address's parameter is a secret, by its name or by how random it looks."""
    if not value:
        return False
    if len(value) >= 4 and any(re.fullmatch(word, name, re.IGNORECASE) for word in _words()):
        return True
    quoted = f'"{value}"'
    return any(found for detector in _by_entropy() for found in _strings(detector, quoted))


def _span(secret_type: str, match: re.Match[str]) -> tuple[int, int]:
    """All that matched and what it runs into: groups, and patterns that end early, hold only a
    part of the secret. Of an address, the password."""
    if secret_type == _PASSWORD:
        return match.span(1)
    rest = _REST.match(match.string, match.end())
    return match.start(), rest.end() if rest else match.end()


def _private_key_end(text: str, at: int) -> int:
    whole = _KEY_BODY.match(text, at) or _KEY_REST.match(text, at)
    return whole.end() if whole else at


def _kind(secret_type: str) -> str:
    return KEY if any(word in secret_type.lower() for word in _KEY_WORDS) else TOKEN


def _strings(detector: Any, quoted: str) -> Iterator[str]:
    for found in detector.analyze_string(quoted):
        if detector.calculate_shannon_entropy(found) > detector.entropy_limit:
            yield found


@cache
def _by_form() -> tuple[Any, ...]:
    base, mapping = _library()
    found = [kind() for kind in mapping.values() if issubclass(kind, base.RegexBasedDetector)]
    return tuple(one for one in found if one.secret_type not in _LEFT_OUT)


@cache
def _by_entropy() -> tuple[Any, ...]:
    from detect_secrets.plugins.high_entropy_strings import (
        Base64HighEntropyString,
        HexHighEntropyString,
    )

    return Base64HighEntropyString(), HexHighEntropyString()


@cache
def _words() -> tuple[str, ...]:
    """Names of secrets, as patterns of the library, with what may stand around them."""
    from detect_secrets.plugins.keyword import DENYLIST

    around = r"[\w.\-]*"
    return tuple(f"{around}(?:{word}){around}" for word in (*DENYLIST, "token", "sig(?:nature)?"))


@cache
def _library() -> tuple[Any, Any]:
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins import base
    except ModuleNotFoundError:
        raise ScrubberMissing(
            "detect-secrets is not installed; scrubbing needs: pip install 's2l[scrub]'"
        ) from None
    return base, get_mapping_from_secret_type_to_class()
