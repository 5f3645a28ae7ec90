"""A million arrivals pass through bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# The peak is VmHWM: it counts from this program's own start, and every page, Arrow's too.
MILLION = """
import json, sys
from pathlib import Path
from s2l.workloads.arrival import Arrival, ArrivalKind
from s2l.workloads.document import Document
from s2l.workloads.manifest import Collector
from s2l.workloads.query import Query
from s2l.workloads.trace import Trace
from s2l.workloads.trace_writer import TraceWriter

def peak_mib():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

def write(path, queries):
    page = Document.of_text(url="u", title="", text="text")
    with TraceWriter.create(path, name="t", collector=Collector("c", "1"), licence="x") as writer:
        writer.add_document(page)
        for q in range(queries):
            writer.add_query(Query(f"q{q}", "?", offset_us=q))
            for seq in range(20):
                kind = ArrivalKind.END if seq == 19 else ArrivalKind.APPEND
                docs = () if seq == 19 else (page.doc_id,)
                writer.add_arrival(Arrival(f"q{q}", seq, kind, seq, seq + q, docs, detail=f"{q}"))
        writer.finish()

def read(path):
    return sum(len(one.arrivals) for one in Trace.open(path).retrievals())

root = Path(sys.argv[1])
write(root / "small", 1_000)
read(root / "small")
before = peak_mib()
write(root / "large", 50_000)
written = peak_mib()
count = read(root / "large")
print(json.dumps({"arrivals": count, "write": written - before, "read": peak_mib() - written}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_million_arrivals(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MILLION, str(tmp_path)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["arrivals"] == 1_000_000
    # As Python objects these rows take more than 400 MiB.
    assert found["write"] < 180
    assert found["read"] < 60
