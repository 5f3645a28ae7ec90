"""``s2l publish``"""

from collections.abc import Sequence
from pathlib import Path

import click

from s2l.folders import RUNS
from s2l.progress import bar, say
from s2l.replayer.run import Run
from s2l.reports.site.build import (
    build_site,
    pages_folder,
    runs_in,
    space_card,
    write_no_jekyll,
)
from s2l.reports.site.index import SITE_FILE, SiteIndex
from s2l.runs import RUN
from s2l.workloads.plural import counted
from s2l.workloads.sharing.spaces import README, SpaceSite, add_to_space, space_address
from s2l.writing import writing


@click.command()
@click.argument("runs", nargs=-1, type=RUN)
@click.option("--to", "folder", type=click.Path(path_type=Path), help="A folder of the site.")
@click.option(
    "--github-pages", type=click.Path(path_type=Path), help="A repository: its docs/ is the site."
)
@click.option("--space", help="A static Space of the Hugging Face Hub, user/name.")
@click.option("--private", is_flag=True, help="Of a new Space.")
@click.option("--title", help="Of the site.")
@click.option("--site-url", help="Where it will be seen; the feed needs it for whole addresses.")
def publish(
    runs: tuple[Path, ...],
    folder: Path | None,
    github_pages: Path | None,
    space: str | None,
    private: bool,
    title: str | None,
    site_url: str | None,
) -> None:
    """Make a static site of RUNS (runs, or folders of runs; without any, runs/), or add to one.

    Runs that are on the site stay there, also where their folders are gone. The token for --space
    is read from HF_TOKEN.
    """
    if sum(target is not None for target in (folder, github_pages, space)) != 1:
        raise click.UsageError("name one place: --to FOLDER, --github-pages FOLDER or --space NAME")
    if site_url is not None and not site_url.startswith(("https://", "http://")):
        raise click.UsageError(f"--site-url {site_url!r} is no address; write it with https://")
    found = runs_in(runs or (RUNS,))
    if space is not None:
        _to_space(found, space, title, site_url, private=private)
        return
    place = folder or pages_folder(github_pages or Path())
    index = _build(found, place, title, site_url)
    if github_pages:
        write_no_jekyll(place)
        say("GitHub: Settings, Pages, deploy from a branch, folder " + _pages_choice(place))
    say(f"site: {place / 'index.html'} ({counted(len(index.runs), 'run')})")


def _pages_choice(place: Path) -> str:
    return "/docs" if place.name == "docs" else "/ (root)"


def _build(runs: Sequence[Run], place: Path, title: str | None, url: str | None) -> SiteIndex:
    with bar("reports", len(runs)) as shown, writing(place):
        return build_site(runs, place, title=title, url=url, on_run=shown.advance)


def _to_space(
    runs: Sequence[Run], repo: str, title: str | None, url: str | None, *, private: bool
) -> None:
    address = space_address(repo)

    def build(site: Path, before: SpaceSite) -> None:
        if before.content is not None:
            (site / SITE_FILE).write_bytes(before.content)
        index = _build(runs, site, title, url or address)
        (site / README).write_text(space_card(index.title), encoding="utf-8")

    commit = add_to_space(repo, SITE_FILE, build, private=private)
    say(f"site: {url or address} (commit {commit})")
