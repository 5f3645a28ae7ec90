"""Stream2LLM crawl traces, to the letter of their description."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.errors import ExportFailed, ImportFailed, TraceError
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.synth.text import WordTexts
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

LONG_PAGE = "long " * 60_000

QUERY_2 = """\
type,startTime,endTime,query,content
tavily_search,100.5,101.25,Who was it?,
page_scrape,101.25,104.0,,"Page, with ""quotes""
and a line."
page_scrape,101.25,102.5,,
page_scrape,101.25,103.000001,,NaN
"""


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    folder = tmp_path / "crawl"
    folder.mkdir()
    (folder / "query_2.csv").write_text(QUERY_2, encoding="utf-8")
    # No column of content at all, and a search that is not the first row.
    (folder / "query_10.csv").write_text(
        "type,startTime,endTime,query\npage_scrape,1.0,3.0,\ntavily_search,0.5,0.75,Second?\n"
    )
    with (folder / "query_11.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["type", "startTime", "endTime", "query", "content"])
        table.writerow(["tavily_search", 0, 1, "Long?", ""])
        table.writerow(["page_scrape", 1, 2, "", LONG_PAGE])
    (folder / "notes.txt").write_text("not a query")
    return folder


def test_quirks(crawl: Path, bench: Any) -> None:
    log = ImportLog()
    trace = bench.read("stream2llm-crawl", crawl, log=log)
    assert (log.files, log.rows, log.bad) == (3, 8, 0)
    assert list(trace.queries()) == [
        Query("2", "Who was it?"),
        Query("10", "Second?"),
        Query("11", "Long?"),
    ]
    documents = {one.doc_id: one.text for one in trace.documents()}
    arrivals = list(trace.arrivals())
    page = arrivals[3].doc_ids
    assert documents[page[0]] == 'Page, with "quotes"\nand a line.'
    assert sorted(map(len, documents.values())) == [31, len(LONG_PAGE)]
    search, append, end = ArrivalKind.SEARCH, ArrivalKind.APPEND, ArrivalKind.END
    assert arrivals[:5] == [
        Arrival("2", 0, search, 0, 750_000),
        Arrival("2", 1, append, 750_000, 2_000_000, (), "empty"),
        Arrival("2", 2, append, 750_000, 2_500_001, (), "empty"),
        Arrival("2", 3, append, 750_000, 3_500_000, page),
        Arrival("2", 4, end, 3_500_000, 3_500_000),
    ]
    assert arrivals[5:8] == [
        Arrival("10", 0, search, 0, 250_000),
        Arrival("10", 1, append, 500_000, 2_500_000, (), "empty"),
        Arrival("10", 2, end, 2_500_000, 2_500_000),
    ]


def test_round_trip_with_delays(crawl: Path, bench: Any, same: Any, tmp_path: Path) -> None:
    delays = tmp_path / "delays.txt"
    delays.write_text("# rate 4\n0.25\n\n0.1\n1.7\n")
    trace = bench.read("stream2llm-crawl", crawl, ImportOptions(delays=delays))
    assert [query.offset_us for query in trace.queries()] == [250_000, 350_000, 2_050_000]
    out = bench.write("stream2llm-crawl", trace)
    assert sorted(file.name for file in out.iterdir()) == [
        "arrival_delays.txt",
        "query_10.csv",
        "query_11.csv",
        "query_2.csv",
    ]
    again = ImportOptions(delays=out / "arrival_delays.txt")
    same(trace, bench.read("stream2llm-crawl", out, again))


def test_a_file_that_is_left_out_has_its_own_delay(crawl: Path, bench: Any, tmp_path: Path) -> None:
    (crawl / "query_10.csv").write_text("type,startTime,endTime,query\npage_scrape,0,1,\n")
    (tmp_path / "delays.txt").write_text("1\n1\n1\n")
    log = ImportLog()
    trace = bench.read(
        "stream2llm-crawl", crawl, ImportOptions(delays=tmp_path / "delays.txt"), log
    )
    assert log.bad_files == 1
    assert {q.query_id: q.offset_us for q in trace.queries()} == {"2": 1_000_000, "11": 3_000_000}


def test_numbers_that_do_not_rise_with_time_are_given_anew(bench: Any, tmp_path: Path) -> None:
    """Delays are by the order of the files' numbers: it has to be that of the queries."""
    with TraceWriter.create(
        tmp_path / "t", name="t", collector=Collector("c", "1", {}, 0), licence="CC0-1.0"
    ) as writer:
        for query_id, offset_us in (("2", 0), ("1", 5_000_000)):
            writer.add_query(Query(query_id, f"What is {query_id}?", offset_us=offset_us))
            writer.add_arrival(Arrival(query_id, 0, ArrivalKind.SEARCH, 0, 10))
            writer.add_arrival(Arrival(query_id, 1, ArrivalKind.END, 10, 10))
        writer.finish()
    out = bench.write("stream2llm-crawl", Trace.open(tmp_path / "t"))
    again = bench.read("stream2llm-crawl", out, ImportOptions(delays=out / "arrival_delays.txt"))
    assert [(q.text, q.offset_us) for q in again.queries()] == [
        ("What is 2?", 0),
        ("What is 1?", 5_000_000),
    ]


def test_bad_rows_and_files_are_named(crawl: Path, bench: Any) -> None:
    (crawl / "query_2.csv").write_text(
        "type,startTime,endTime,query,content\n"
        "tavily_search,0,1,Q?,\n"
        "page_scrape,1,soon,,x\n"
        "page_scrape,2,1,,x\n"
        "video,1,2,,x\n"
        "page_scrape,1,2\n"
        "page_scrape,1,2,,good\n"
    )
    (crawl / "query_3.csv").write_text("type,startTime,endTime,query\npage_scrape,0,1,\n")
    (crawl / "query_4.csv").write_text("")
    (crawl / "query_5.csv").write_text("startTime,endTime\n1,2\n")
    (crawl / "query_6.csv").write_bytes(b"type,startTime,endTime,query\ntavily_search,0,1,\xff\n")
    log = ImportLog()
    trace = bench.read("stream2llm-crawl", crawl, log=log)
    assert [query.query_id for query in trace.queries()] == ["2", "10", "11"]
    assert (log.rows, log.bad) == (11, 5)
    assert log.bad_files == 4
    names = [str(bad).replace(f"{crawl}/", "") for bad in log.listed]
    assert names[:5] == [
        "query_2.csv, line 3: endTime is 'soon'; it must be a number",
        "query_2.csv, line 4: endTime 1 is before startTime 2",
        "query_2.csv, line 5: type is 'video'; it must be tavily_search or page_scrape",
        "query_2.csv, line 6: has 3 fields; 5 belong there",
        "query_3.csv: has no search row with a query",
    ]
    assert "query_4.csv: is empty" in names
    assert "query_5.csv: has no column type, query" in names
    assert "query_6.csv: stops being UTF-8 text; what follows is left out" in names


def test_strict_stops_at_the_first(crawl: Path, bench: Any) -> None:
    (crawl / "query_10.csv").write_text("type,startTime,endTime,query\ntavily_search,x,1,Q\n")
    with pytest.raises(ImportFailed, match=r"query_10\.csv, line 2: startTime is 'x'") as caught:
        bench.read("stream2llm-crawl", crawl, log=ImportLog(strict=True))
    assert "\n" not in str(caught.value)
    assert [one.name for one in crawl.parent.iterdir()] == ["crawl"]  # nothing half-written


def test_what_was_there_is_left_alone(crawl: Path) -> None:
    fmt, texts = FORMATS["stream2llm-crawl"], WordTexts(0)
    with pytest.raises(TraceError, match="not empty"):
        import_trace(crawl, fmt, crawl, texts, Provenance("t", "0"))
    assert (crawl / "query_2.csv").is_file()


def test_too_few_delays(crawl: Path, bench: Any, tmp_path: Path) -> None:
    delays = tmp_path / "delays.txt"
    delays.write_text("1\n")
    with pytest.raises(ImportFailed, match="fewer delays than there are queries"):
        bench.read("stream2llm-crawl", crawl, ImportOptions(delays=delays))
    delays.write_text("1\nlater\n")
    with pytest.raises(ImportFailed, match=r"line 2: 'later' is not seconds"):
        bench.read("stream2llm-crawl", crawl, ImportOptions(delays=delays))


def test_an_empty_folder(tmp_path: Path, bench: Any) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(ImportFailed, match="nothing in it can be imported as stream2llm-crawl"):
        bench.read("stream2llm-crawl", tmp_path / "none")


def test_replaced_context_is_refused(bench: Any, trace_path: Path) -> None:
    from s2l.workloads.trace import Trace

    with pytest.raises(ExportFailed, match=r"query 'q-b' has its context replaced"):
        bench.write("stream2llm-crawl", Trace.open(trace_path))


FOLDER = """
import json, sys
from pathlib import Path
from s2l.workloads.formats.base import ImportOptions
from s2l.workloads.formats.import_log import ImportLog
from s2l.workloads.formats.importing import Provenance, import_trace
from s2l.workloads.formats.registry import FORMATS
from s2l.workloads.synth.text import WordTexts

def peak_mib():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024

def read(name):
    root, told = Path(sys.argv[1]), []
    log = ImportLog(tell=lambda done, total: told.append(done / total))
    crawl = FORMATS["stream2llm-crawl"]
    out, provenance = root / f"{name}-out", Provenance("t", "0")
    import_trace(root / name, crawl, out, WordTexts(0), provenance, log=log)
    return told

read("small")
before = peak_mib()
told = read("large")
print(json.dumps([peak_mib() - before, told[-1], told == sorted(told)]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_large_folder_streams(tmp_path: Path) -> None:
    for name, files in (("small", 20), ("large", 160)):
        (tmp_path / name).mkdir()
        for n in range(files):
            page = f"{n} {'page ' * 120_000}"
            rows = f"tavily_search,0,1,Q?,\npage_scrape,1,2,,{page}\n"
            text = f"type,startTime,endTime,query,content\n{rows}"
            (tmp_path / name / f"query_{n}.csv").write_text(text)
    command = [sys.executable, "-c", FOLDER, str(tmp_path)]
    grown_mib, share, in_order = json.loads(
        subprocess.run(command, capture_output=True, check=True).stdout
    )
    assert grown_mib < 60  # of 96 MB of pages
    assert (round(share, 3), in_order) == (1.0, True)
