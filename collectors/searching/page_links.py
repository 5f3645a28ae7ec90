"""The title and the links of an HTML page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree
from lxml import html as lxml_html

from s2l.collectors.searching.base import web_address

MOST_LINKS: Final = 2_000
_MOST_WORDS: Final = 300
_FRAME: Final = frozenset({"nav", "header", "footer", "aside", "form"})


@dataclass(frozen=True, slots=True)
class Link:
    """An absolute address and the words that link to it; ``framed``: in a menu, header, form."""

    url: str
    words: str
    framed: bool = False


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What of a page leads on. A page that asks not to be followed has no links here."""

    title: str = ""
    links: tuple[Link, ...] = ()


def page_links(body: bytes, charset: str | None, url: str) -> PageLinks:
    """Read the page that came from ``url``: its first 2,000 links, those marked nofollow left out.

    What cannot be parsed has none.
    """
    try:
        tree = lxml_html.document_fromstring(body, parser=_parser(charset))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return PageLinks()
    title = " ".join((tree.findtext(".//title") or "").split())[:_MOST_WORDS]
    if _asks_not_to_follow(tree):
        return PageLinks(title)
    bases = tree.xpath("//base/@href")
    base = (web_address(str(bases[0]), url) if bases else None) or url
    return PageLinks(title, tuple(_links(tree, base)))


def _parser(charset: str | None) -> Any:
    try:
        return lxml_html.HTMLParser(encoding=charset)
    except LookupError:
        return lxml_html.HTMLParser()


def _asks_not_to_follow(tree: Any) -> bool:
    metas = tree.xpath("//meta[@name and @content]")
    said = (m.get("content") for m in metas if m.get("name").strip().lower() == "robots")
    return any(
        {"nofollow", "none"} & set(words.lower().replace(",", " ").split()) for words in said
    )


def _links(tree: Any, base: str) -> Iterator[Link]:
    given = 0
    for anchor in tree.iter("a", "area"):
        if given == MOST_LINKS:
            return
        href = anchor.get("href")
        if href is None or "nofollow" in (anchor.get("rel") or "").lower().split():
            continue
        if (url := web_address(href, base)) is not None:
            given += 1
            yield Link(url, _words(anchor), _is_framed(anchor))


def _words(anchor: Any) -> str:
    text = "".join(anchor.itertext()) or anchor.get("title") or anchor.get("alt") or ""
    return " ".join(text.split())[:_MOST_WORDS]


def _is_framed(anchor: Any) -> bool:
    return any(parent.tag in _FRAME for parent in anchor.iterancestors())
