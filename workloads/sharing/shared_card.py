"""The card of a dataset that is shared: what, how, its shape, its licence, its limits, its use."""

from collections.abc import Iterator, Mapping
from typing import Final

from s2l.workloads.card import dataset_card
from s2l.workloads.manifest import Manifest
from s2l.workloads.markdown_text import line
from s2l.workloads.provenance import DocumentRights
from s2l.workloads.scrubbing.changes import change_in_words, changes_of
from s2l.workloads.sharing.file_names import PLOT
from s2l.workloads.sharing.shape import Shape
from s2l.workloads.stats.stats_table import LABELS, figure

_BEFORE: Final = "## Load it\n"
_COLUMNS: Final = ("p50", "p95", "p99")
_LIMITS: Final = """\
## Limits

Times are those of one machine and its network at one moment; they are no property of the sites.
Pages change: a text here is what was there when it was fetched. Retrieved texts belong to their
authors; the licence above is the collector's statement, and documents may have others.
Statistics with fewer values than a percentile needs are shown as n/a.

"""


def shared_card(
    manifest: Manifest, shape: Shape, rights: DocumentRights, *, plot: bool, repo: str | None
) -> str:
    """The card; ``repo`` is its name on the Hub, where it goes there."""
    before, at, after = dataset_card(manifest).partition(_BEFORE)
    text = f"{before}{_shape(shape, plot)}{_rights(rights)}{_changes(manifest)}{_LIMITS}"
    return f"{text}{_fetch(repo)}{at}{_addressed(after, repo)}"


def _shape(shape: Shape, plot: bool) -> str:
    picture = [f"![Shares of values up to x]({PLOT})", ""] if plot else []
    heads = ["", "n", "mean", *_COLUMNS, "max"]
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    rows += [f"| {' | '.join(cells)} |" for cells in _rows(shape)]
    return "\n".join(["## Its shape", "", *picture, *rows, "", ""])


def _rows(shape: Shape) -> Iterator[list[str]]:
    for name, found in shape.items():
        label = f"{LABELS.get(name, name)}, {found.unit}"
        middle = [figure(found.percentiles[column]) for column in _COLUMNS]
        yield [label, f"{found.n:,}", figure(found.mean), *middle, figure(found.max)]


def _rights(rights: DocumentRights) -> str:
    lines = ["## Rights of the documents", "", "| | documents |", "|---|---|"]
    lines += _counted("licence", rights.licences)
    lines += _counted("robots.txt", rights.robots)
    return "\n".join([*lines, "", ""])


def _counted(what: str, counts: Mapping[str, int]) -> Iterator[str]:
    for value, n in counts.items():
        yield f"| {what}: {line(' '.join(value.split())[:200])} | {n:,} |"


def _changes(manifest: Manifest) -> str:
    changes = changes_of(manifest)
    if not changes:
        return ""
    lines = [f"- {line(change_in_words(change))}" for change in changes]
    return "\n".join(["## What was changed since it was captured", "", *lines, "", ""])


def _fetch(repo: str | None) -> str:
    address = f"hf:{repo}" if repo else "ADDRESS"
    where = (
        "A revision pins it: `@` and a commit behind the name."
        if repo
        else "ADDRESS is `hf:user/name@revision`, an https address, or an archive; FOLDER below is "
        "the folder that this prints, or any copy of it."
    )
    text = "Every file is checked against its sha256 before anything is read."
    return f"## Get it\n\n    s2l dataset pull {address}\n\n{where} {text}\n\n"


def _addressed(text: str, repo: str | None) -> str:
    if repo is None:
        return text
    named = text.replace('load_dataset("FOLDER"', f'load_dataset("{repo}"')
    return named.replace("s2l replay FOLDER", f"s2l replay hf:{repo}")
