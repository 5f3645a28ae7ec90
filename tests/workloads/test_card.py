"""The dataset card, and the library that reads it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from s2l.workloads.card import dataset_card
from s2l.workloads.manifest import Collector, Manifest, TraceCounts

LOAD = """
import json, sys
from datasets import load_dataset
names = ["queries", "arrivals", "documents"]
loaded = {name: load_dataset(sys.argv[1], name)["train"] for name in names}
print(json.dumps({
    "rows": {name: len(table) for name, table in loaded.items()},
    "columns": {name: table.column_names for name, table in loaded.items()},
    "answers": loaded["queries"][0]["answers"],
    "doc_ids": loaded["arrivals"][1]["doc_ids"],
}))
"""


def load(folder: Path, cache: Path) -> dict[str, Any]:
    """What the datasets library sees in a folder, with no network."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cache)}
    command = [sys.executable, "-c", LOAD, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_load_dataset_reads_the_folder(trace_path: Path, tmp_path: Path, small: Any) -> None:
    found = load(trace_path, tmp_path / "cache")
    assert found["rows"] == {"queries": 4, "arrivals": 8, "documents": 3}
    assert found["columns"]["queries"] == ["query_id", "text", "answers", "offset_us", "meta"]
    assert found["answers"] == ["first", "the first"]
    assert found["doc_ids"] == [small.A, small.B]


def card(small: Any, **changes: Any) -> str:
    counts = TraceCounts(queries=1_200, finished_queries=1_199, arrivals=99_999, documents=5)
    facts = {
        "name": 'A: "b" | #c\nd',
        "created_utc": "2026-01-02T03:04:05Z",
        "collector": small.COLLECTOR,
        "clock": "monotonic",
        "counts": counts,
        "licence": "CC-BY-4.0",
        "privacy": "full",
        "files": [],
    }
    return dataset_card(Manifest(**{**facts, **changes}))


def front_matter(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_front_matter_is_yaml(small: Any) -> None:
    found = front_matter(card(small))
    assert found["pretty_name"] == 'A: "b" | #c\nd'
    assert found["license"] == "cc-by-4.0"
    assert found["size_categories"] == ["10K<n<100K"]
    assert "s2l-trace" in found["tags"]
    assert found["configs"] == [
        {"config_name": "queries", "data_files": "queries.parquet", "default": True},
        {"config_name": "arrivals", "data_files": "arrivals/*.parquet"},
        {"config_name": "documents", "data_files": "documents/*.parquet"},
    ]


def test_a_licence_that_the_hub_does_not_know(small: Any) -> None:
    found = front_matter(card(small, licence='terms: "of" the sites'))
    assert (found["license"], found["license_name"]) == ("other", 'terms: "of" the sites')


def test_nothing_of_others_is_markup(small: Any) -> None:
    evil = "[free](https://evil.example)\n\n<img src=x> `a` | *b* &lt;"
    inert = "\\[free\\](https://evil.example) \\<img src=x\\> \\`a\\` \\| \\*b\\* &amp;lt;"
    counts = TraceCounts(queries=1, finished_queries=1, arrivals=1, documents=1, failures={evil: 2})
    collector = Collector(evil, evil, {"a": "``</code> <img src=x>"}, None)
    facts = {"name": evil, "clock": evil, "created_utc": evil, "licence": evil}
    text = card(small, **facts, collector=collector, counts=counts).split("---\n")[2]
    assert text.count(inert) == 7
    options = '``` {"a": "``</code> <img src=x>"} ```'
    assert text.replace(options, "").count("<img") == 7
    assert f"Options of the collector: {options}\n" in text


def test_text_says_what_it_is(small: Any) -> None:
    text = card(small)
    assert '# A: "b" \\| \\#c d' in text
    assert "| questions | 1,200 |" in text
    assert "| recorded to the end | 1,199 |" in text
    assert "| collected by | crawl, version 0.1.0, seed 7 |" in text
    assert "s2l replay FOLDER" in text
