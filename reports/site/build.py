"""Builds a site in a folder, or adds to the one that is there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from s2l.replayer.run import Run
from s2l.reports.html import write_html
from s2l.reports.site.entries import run_entry, trace_entry
from s2l.reports.site.feed import feed
from s2l.reports.site.index import SITE_FILE, SiteError, SiteIndex, merged, read_index
from s2l.reports.site.pages import index_page, trace_page
from s2l.workloads.durable import write_durably

NO_JEKYLL: Final = ".nojekyll"
"""Its presence tells GitHub Pages to serve files as they are."""


def runs_in(paths: Sequence[Path]) -> list[Run]:
    """The runs that are, or are below, the given folders, each once, in the order of their paths.

    Raises:
        RunError: a folder is not there or holds no run, or a run cannot be read.
    """
    found: dict[Path, Run] = {}
    for path in paths:
        files = sorted(path.rglob("run.json"))
        if not files:
            raise SiteError(f"{path}: no run in it; name runs, or a folder of runs")
        for file in files:
            found.setdefault(file.parent.resolve(), Run.open(file.parent))
    return list(found.values())


def build_site(
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str | None = None,
    url: str | None = None,
    on_run: Callable[[], None] = lambda: None,
) -> SiteIndex:
    """Write the pages of these runs, and anew all that lists them; nothing is ever removed.

    The same runs and the same site before give the same bytes. ``site.json`` is written last.

    Args:
        runs: to be added, or to be written anew.
        folder: of the site; made where it is not there.
        title, url: of the site; None keeps what it has.
        on_run: called after each report.

    Raises:
        SiteError: the folder holds something else.
        RunError: a run cannot be read. OSError: a file cannot be written.
    """
    before = read_index(folder) or SiteIndex()
    entries = [run_entry(run) for run in runs]
    for run, entry in zip(runs, entries, strict=True):
        page = folder / "runs" / entry.id
        page.mkdir(parents=True, exist_ok=True)
        write_html(run, page / "index.html")
        on_run()
    index = merged(before, entries, [trace_entry(run) for run in runs])
    index = msgspec.structs.replace(
        index,
        title=before.title if title is None else title,
        url=before.url if url is None else url.rstrip("/") + "/",
    )
    write_lists(index, folder)
    return index


def write_lists(index: SiteIndex, folder: Path) -> None:
    """Everything that follows from the index alone."""
    for trace in index.traces:
        card = folder / "traces" / trace.id
        card.mkdir(parents=True, exist_ok=True)
        write_durably(card / "index.html", trace_page(index, trace).encode())
    write_durably(folder / "index.html", index_page(index).encode())
    write_durably(folder / "feed.xml", feed(index))
    write_durably(folder / SITE_FILE, index.encode())


def pages_folder(repository: Path) -> Path:
    """Where GitHub Pages looks: ``docs/`` of a repository; a folder that is none is the site."""
    return repository / "docs" if (repository / ".git").exists() else repository


def write_no_jekyll(folder: Path) -> None:
    """Have GitHub Pages serve the site as it is."""
    write_durably(folder / NO_JEKYLL, b"")


def space_card(title: str) -> str:
    """``README.md`` of a static Space; strings in JSON's quotes, which YAML reads the same."""
    quoted = msgspec.json.encode(title).decode()
    return (
        f"---\ntitle: {quoted}\nsdk: static\napp_file: index.html\npinned: false\n---\n\n"
        "Reports of runs that streamed retrieved context to a language model server, beside runs\n"
        "that waited for all of it. `site.json` lists them.\n"
    )
