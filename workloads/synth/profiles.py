"""All profiles, by name."""

from collections.abc import Callable
from typing import Final

from s2l.workloads.errors import TraceError
from s2l.workloads.synth.anns_profile import AnnsProfile
from s2l.workloads.synth.crawl_profile import CrawlProfile
from s2l.workloads.synth.profile import Profile
from s2l.workloads.synth.ragpulse_profile import RagpulseProfile

PROFILES: Final[dict[str, Callable[[], Profile]]] = {
    "stream2llm-crawl": CrawlProfile,
    "stream2llm-anns": AnnsProfile,
    "ragpulse": RagpulseProfile,
}


def profile_named(name: str) -> Profile:
    """The profile of this name. Raises TraceError that lists the choices."""
    if name not in PROFILES:
        raise TraceError(f"profile {name!r} is not one of {', '.join(PROFILES)}")
    return PROFILES[name]()
