"""The main text of an HTML page."""

import re
from typing import Any, Final

import trafilatura
from lxml.etree import ParserError
from lxml.html import HTMLParser, document_fromstring
from trafilatura.metadata import extract_license, extract_title

from s2l.collectors.extraction.charset import decode
from s2l.collectors.extraction.extracted import Extracted
from s2l.collectors.well_formed import readable

_LITTLE: Final = 200
_AT_ONCE_S: Final = 5
_REFRESH: Final = re.compile(r"\s*(\d{1,4})(?:\.\d*)?\s*[;,]\s*url\s*=\s*(.+)", re.I | re.S)
_PLEA: Final = re.compile(r"(?:enable|requires?|without|need)\b.{0,40}\bjavascript", re.I | re.S)


def html_text(body: bytes, charset: str | None) -> Extracted:
    """The main text, or what the page says outside its frame where no main part is found."""
    decoded = decode(body, charset, html=True)
    # Before parsing: the parser would drop the start of a terminal sequence and keep its end.
    html = readable(decoded.text).strip()
    tree = trafilatura.load_html(html)
    if tree is None:
        return Extracted("", "", decoded.meta(), refresh_url=_refresh_url_of_head(html))
    title, refresh_url, scripted = _title(tree), _refresh_url(tree), _is_scripted(tree)
    licence = (extract_license(tree) or "").strip()
    text = trafilatura.extract(tree, favor_recall=True, include_comments=False)
    text = (text or trafilatura.html2txt(html)).strip()
    needs_script = scripted and (len(text) < _LITTLE or _asks_for_script(text))
    return Extracted(title, text, decoded.meta(), refresh_url, needs_script, licence)


def _refresh_url_of_head(html: str) -> str | None:
    """Of a page of a head and little more, which is not loaded for its text."""
    try:
        return _refresh_url(document_fromstring(html.encode(), parser=HTMLParser(encoding="utf-8")))
    except ParserError:  # nothing in it at all
        return None


def _title(tree: Any) -> str:
    return (extract_title(tree) or "").strip()


def _refresh_url(tree: Any) -> str | None:
    """Where ``<meta http-equiv="refresh">`` leads, if at once or nearly so."""
    for meta in tree.iter("meta"):
        if (meta.get("http-equiv") or "").strip().lower() != "refresh":
            continue
        found = _REFRESH.fullmatch(meta.get("content") or "")
        if found is not None and int(found[1]) <= _AT_ONCE_S:
            return str(found[2]).strip().strip("\"'").strip() or None
    return None


def _is_scripted(tree: Any) -> bool:
    """Whether the page brings a program that could write its text."""
    return any(_is_program(script) for script in tree.iter("script"))


def _is_program(script: Any) -> bool:
    kind = (script.get("type") or "text/javascript").strip().lower()
    runs = kind in ("module", "") or "javascript" in kind or "ecmascript" in kind
    return runs and bool(script.get("src") or (script.text or "").strip())


def _asks_for_script(text: str) -> bool:
    return len(text) < 10 * _LITTLE and _PLEA.search(text) is not None
