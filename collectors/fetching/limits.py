"""How much of anything a fetch may take."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Of one fetch, redirects included; the wait for a turn at a site does not count.

    ``connect_s`` covers name lookup, connecting and TLS of one request, ``first_byte_s`` the time
    from there to the end of its headers, ``idle_s`` each wait for more of its body, ``total_s``
    everything. ``max_bytes`` counts the body before and after decompression, each;
    ``max_header_bytes`` one header line, of which there may be 128. With ``cut_off`` a longer
    body is cut there instead of refused.

    Raises:
        ValueError: a limit is not above 0 (redirects: below 0).
    """

    total_s: float = 60.0
    connect_s: float = 10.0
    first_byte_s: float = 30.0
    idle_s: float = 20.0
    max_bytes: int = 10_000_000
    max_header_bytes: int = 32_768
    max_redirects: int = 5
    cut_off: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "max_redirects":
                if value < 0:
                    raise ValueError(f"max_redirects is {value}: give 0 or more")
            elif item.name != "cut_off" and not value > 0:
                raise ValueError(f"{item.name} is {value}: give a number above 0")
