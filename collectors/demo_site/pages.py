"""The pages of the demo site: pydoc's documentation of the standard library as plain HTML."""

import html
import pydoc
import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from s2l.collectors.demo_site.catalogue import MODULES, page_names

_STYLE: Final = (
    "body{font:16px/1.4 sans-serif;max-width:60em;margin:2em auto}.code{font-family:monospace}"
)
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_LINK: Final = re.compile(r'<a href="([\w.]+)\.html(?:#[^"]*)?"[^>]*>(.*?)</a>', re.DOTALL)
_TAG: Final = re.compile(r"<(?:style|title).*?</(?:style|title)>|<[^>]+>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: ``name`` is the dotted name it documents, ``text`` what its HTML says."""

    name: str
    title: str
    html: str

    @property
    def path(self) -> str:
        """Where the site serves it."""
        return f"/{self.name}.html"

    @property
    def text(self) -> str:
        """The page without its markup."""
        return " ".join(html.unescape(_TAG.sub(" ", self.html)).split())


class _PlainHTML(pydoc.HTMLDoc):
    """pydoc's HTML without layout tables and without anything that only this machine has.

    Links to source files would tell where Python is installed, and values of module data hold
    the environment, host names and paths: a trace of this site is made to be shared.
    """

    def page(self, title: str, contents: str) -> str:
        head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
            f"<body><main>\n{contents}\n</main></body></html>\n"
        )

    def heading(self, title: str, *args: str, **kwargs: str) -> str:
        return f"<h1>{title}</h1>\n"

    def section(self, title: str, cls: str, *args: Any, **kwargs: Any) -> str:
        """A section; the arguments are pydoc's: the contents first, a prelude by name or third."""
        contents = args[0]
        prelude = kwargs.get("prelude", args[2] if len(args) > 2 else "")
        return f"<section><h2>{title}</h2>\n{prelude}\n{contents}</section>\n"

    def multicolumn(self, list: Any, format: Any) -> str:
        return "<p>" + ", ".join(format(item) for item in list) + "</p>\n"

    def preformat(self, text: str) -> str:
        return super().preformat(text).replace("&nbsp;", " ")

    def docother(self, object: object, name: str | None = None, *args: Any) -> str:
        shown = f" = {object!r}" if isinstance(object, int | float) else ""
        return f"<strong>{name}</strong>{html.escape(shown)}"


def build_pages(modules: Iterable[str] = MODULES) -> dict[str, Page]:
    """Every page of these modules by its path. Imports them: name those of the catalogue only."""
    with warnings.catch_warnings():
        # Some old names warn when they are looked up; they are documented all the same.
        warnings.simplefilter("ignore")
        objects = {name: value for module in modules for name, value in page_names(module)}
        pages = [_build(name, value, objects) for name, value in objects.items()]
    return {page.path: page for page in pages}


def _build(name: str, value: object, known: Iterable[str]) -> Page:
    writer = _PlainHTML()
    title = f"{name} ({_kind(value)}) - Python {sys.version_info.major}.{sys.version_info.minor}"
    body = _ADDRESS.sub("", writer.document(value, name))
    # It is the default of a parameter in platform, and says where this Python is installed.
    body = body.replace(html.escape(sys.executable, quote=False), "python")

    def keep_known(link: re.Match[str]) -> str:
        return link[0] if link[1] in known else link[2]

    return Page(name, title, writer.page(title, _LINK.sub(keep_known, body)))


def _kind(value: object) -> str:
    return pydoc.describe(value).split(" ")[0]


def index_html(pages: Iterable[Page]) -> str:
    """The page that lists them all."""
    items = "\n".join(f'<li><a href="{p.path}">{html.escape(p.title)}</a></li>' for p in pages)
    search = '<form action="/search"><input name="q"><button>Search</button></form>'
    title = "Python's standard library: demo site"
    return _PlainHTML().page(title, f"<h1>{title}</h1>{search}\n<ul>\n{items}\n</ul>")
