"""The colours of charts and page, by role: on light paper, and what each becomes on dark.

Blue and vermilion keep apart for every common colour blindness, and dash and shape tell the
deliveries apart without colour. All text colours have a contrast of 4.5 or more on their ground.
"""

from typing import Final

PAPER: Final = "#ffffff"
INK: Final = "#1c2126"
MUTED: Final = "#5b6670"
GRID: Final = "#e1e5e9"
STREAM: Final = "#0b62a8"
WAIT: Final = "#b5480b"
LOST: Final = "#7b3f98"
"""What was thrown away, in charts alone."""

DARK: Final[dict[str, str]] = {
    PAPER: "#14181c",
    INK: "#e6e9ec",
    MUTED: "#a0abb5",
    GRID: "#2c343b",
    STREAM: "#6db7f2",
    WAIT: "#f2a65a",
    LOST: "#c79fe0",
}
"""The colour in the dark for each light one."""

_NAMES: Final = {
    "paper": PAPER,
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "stream": STREAM,
    "wait": WAIT,
    "lost": LOST,
}


def stylesheet() -> str:
    """CSS variables for both schemes, and the rules that turn charts dark with the page.

    Charts carry the light colours as SVG attributes, which any CSS rule overrides: so they follow
    the scheme at once, and stay light on paper and in saved pictures.
    """
    light = "".join(f"--{name}:{colour};" for name, colour in _NAMES.items())
    dark = "".join(f"--{name}:{DARK[colour]};" for name, colour in _NAMES.items())
    charts = "".join(
        f'.chart svg [{what}="{colour}"]{{{what}:var(--{name})}}'
        for name, colour in _NAMES.items()
        for what in ("fill", "stroke")
    )
    in_the_dark = f":root{{color-scheme:dark;{dark}}}{charts}"
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{{in_the_dark}}}"
