"""``README.md`` of a trace: a dataset card that people and the ``datasets`` library read."""

import json
from string import Template
from typing import Final

from s2l.workloads.manifest import Manifest
from s2l.workloads.markdown_text import code, line

HUB_LICENCES: Final = frozenset(
    {"apache-2.0", "bsd-3-clause", "cc-by-3.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-3.0"}
    | {"cc-by-sa-4.0", "cc0-1.0", "mit", "odbl", "odc-by", "pddl", "unknown"}
)
"""Licences that the hub knows by name; any other one is shown under its own."""

_SIZES: Final = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")]
_SIZES_ABOVE: Final = [(10**6, "100K<n<1M"), (10**7, "1M<n<10M"), (10**8, "10M<n<100M")]

_PRIVACY: Final = {
    "full": "complete: the retrieved texts are in it",
    "urls": "without the retrieved texts: addresses, lengths and hashes are there",
    "hashed": "without the retrieved texts and their addresses: lengths and hashes are there",
}

_BODY: Final = Template("""\
# $name

A trace of how context arrived for questions to a language model: when each piece of retrieved
text was there, in microseconds since its question was asked. Replaying it sends the same context
at the same moments to a server, so that answering while context still arrives can be compared
with waiting for all of it.

| | |
|---|---|
| questions | $queries |
| recorded to the end | $finished |
| arrivals | $arrivals |
| failed arrivals | $failures |
| documents | $documents |
| collected by | $collector, version $version, seed $seed |
| created | $created |
| clock | $clock |
| texts | $privacy |
| licence | $licence |

## Load it

```python
from datasets import load_dataset

queries = load_dataset("FOLDER", "queries")
arrivals = load_dataset("FOLDER", "arrivals")
documents = load_dataset("FOLDER", "documents")
```

## Replay it

    s2l replay FOLDER

## What is in it

- `queries.parquet`: `query_id`, `text`, reference `answers`, `offset_us` (when it was asked, since
  the start of the trace), `meta` (JSON).
- `arrivals/`: one row per event, by query and then by `seq`. `kind` says what it does: `search`
  (hits are known, no text yet), `append` (its documents come after those already there),
  `replace` (its documents are the whole context from now on), `end` (the retrieval is over).
  `start_us` and `arrival_us` count from the query's start. A failed one has another `status` than
  `ok`, words in `detail`, and no documents. A query that was cut short has no `end`.
- `documents/`: every text once: `doc_id`, `url`, `title`, `text` (null where it is hidden),
  `text_sha256`, `n_chars`, `mime`, `fetched_utc`, `meta` (JSON).
- `manifest.json`: how it was collected, with all options, and the sha256 of every file.

Options of the collector: $options
""")


def dataset_card(manifest: Manifest) -> str:
    """The card of the trace that ``manifest`` describes."""
    counts = manifest.counts
    failures = ", ".join(f"{status} {n}" for status, n in counts.failures.items())
    body = _BODY.substitute(
        name=line(manifest.name),
        queries=f"{counts.queries:,}",
        finished=f"{counts.finished_queries:,}",
        arrivals=f"{counts.arrivals:,}",
        failures=line(failures) or "none",
        documents=f"{counts.documents:,}",
        collector=line(manifest.collector.name),
        version=line(manifest.collector.version),
        seed="none" if manifest.collector.seed is None else manifest.collector.seed,
        created=line(manifest.created_utc),
        clock=line(manifest.clock),
        privacy=_PRIVACY[manifest.privacy],
        licence=line(manifest.licence),
        options=code(json.dumps(manifest.collector.options, ensure_ascii=False, default=str)),
    )
    return f"{_front_matter(manifest)}\n{body}"


def _front_matter(manifest: Manifest) -> str:
    """The YAML block; its strings are in JSON's quotes, which YAML reads the same."""
    lines = ["---", f"pretty_name: {json.dumps(manifest.name)}", *_licence_lines(manifest.licence)]
    lines += ["tags:", *(f"- {tag}" for tag in ("rag", "retrieval", "llm-serving", "s2l-trace"))]
    lines += ["size_categories:", f"- {json.dumps(_size(manifest.counts.arrivals))}", "configs:"]
    for name, files in (
        ("queries", "queries.parquet"),
        ("arrivals", "arrivals/*.parquet"),
        ("documents", "documents/*.parquet"),
    ):
        lines += [f"- config_name: {name}", f"  data_files: {json.dumps(files)}"]
        lines += ["  default: true"] if name == "queries" else []
    return "\n".join([*lines, "---", ""])


def _licence_lines(licence: str) -> list[str]:
    known = licence.lower()
    if known in HUB_LICENCES:
        return [f"license: {json.dumps(known)}"]
    return ["license: other", f"license_name: {json.dumps(licence)}"]


def _size(rows: int) -> str:
    for limit, label in _SIZES + _SIZES_ABOVE:
        if rows < limit:
            return label
    return "n>100M"
