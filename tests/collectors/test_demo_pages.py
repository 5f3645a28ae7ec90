import os
import re
import socket
import sys
from pathlib import Path

import pytest

from s2l.collectors.demo_site.catalogue import MODULES, page_names
from s2l.collectors.demo_site.pages import Page, build_pages
from s2l.collectors.demo_site.search import PageSearch, fts_query


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    return build_pages()


def test_modules_functions_and_classes_have_pages(pages: dict[str, Page]) -> None:
    page = pages["/json.dumps.html"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert page.title == f"json.dumps (function) - Python {version}"
    assert "skipkeys=False, ensure_ascii=True" in page.text
    assert {"/json.html", "/json.JSONDecoder.html", "/os.path.join.html"} <= set(pages)


def test_only_what_a_module_owns_or_exports_has_a_page(pages: dict[str, Page]) -> None:
    assert "/json.codecs.html" not in pages
    assert "/os.sys.html" not in pages
    assert "/json.JSONDecodeError.html" not in pages
    assert [name for name, _ in page_names("bisect")] == [
        "bisect",
        *(f"bisect.{name}" for name in ("bisect", "bisect_left", "bisect_right")),
        *(f"bisect.{name}" for name in ("insort", "insort_left", "insort_right")),
    ]


def test_nothing_of_this_machine_is_on_a_page(pages: dict[str, Page]) -> None:
    environment = [value for value in os.environ.values() if len(value) > 12]
    machine = [sys.executable, os.__file__, 'href="file:', " at 0x"]
    # Short ones, such as /usr, are in many a documentation string.
    names = [sys.prefix, sys.base_prefix, str(Path.home()), socket.gethostname()]
    private = {*environment, *machine, *(name for name in names if len(name) > 5)}
    html = "\n".join(page.html for page in pages.values())
    assert [word for word in private if word in html] == []


def test_links_lead_to_pages_of_the_site(pages: dict[str, Page]) -> None:
    links = {
        link
        for page in pages.values()
        for link in re.findall(r'href="([^"#]+)[^"]*"', page.html)
        if "://" not in link
    }
    assert "builtins.html" in links
    assert {f"/{link}" for link in links} - set(pages) == set()


def test_pages_are_the_same_each_time() -> None:
    assert build_pages(["tempfile"]) == build_pages(["tempfile"])


def test_no_module_of_the_catalogue_talks_or_opens_windows() -> None:
    assert not {"antigravity", "this", "idlelib", "turtle", "tkinter"} & set(MODULES)


def test_search_ranks_the_named_page_first(pages: dict[str, Page]) -> None:
    search = PageSearch(pages.values())
    assert search.find("What is the width in textwrap.wrap?", 3)[0].path == "/textwrap.wrap.html"
    assert search.find("ensure_ascii", 10)[0].path.startswith("/json.")
    assert len(search.find("default value", 5)) == 5
    assert search.find("What is the of?", 5) == []
    search.close()


def test_questions_become_words_and_phrases_and_nothing_else() -> None:
    assert fts_query('Is json.dumps "fast"? NEAR(a b) -x* OR') == (
        '"json dumps" OR "json" OR "dumps" OR "fast" OR "near" OR "b" OR "x"'
    )
    assert fts_query("? ( ) *") == ""
