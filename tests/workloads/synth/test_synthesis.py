"""Synthetic datasets: exact, repeatable, of any size, and like others."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from s2l.workloads.arrival import ArrivalKind
from s2l.workloads.context import final_context
from s2l.workloads.errors import TraceError
from s2l.workloads.synth.measured_profile import measure
from s2l.workloads.synth.profiles import PROFILES, profile_named
from s2l.workloads.synth.synthesis import SynthOptions, write_synthetic
from s2l.workloads.synth.text import WordTexts
from s2l.workloads.token_counter import WordCounter
from s2l.workloads.trace import Trace
from s2l.workloads.validation import validate


def synthetic(path: Path, name: str = "stream2llm-anns", n: int = 40, seed: int = 0) -> Trace:
    write_synthetic(path, profile_named(name), WordTexts(seed), SynthOptions(n, seed))
    return Trace.open(path)


@pytest.mark.parametrize("name", list(PROFILES))
def test_texts_have_the_lengths_that_were_drawn(name: str, tmp_path: Path) -> None:
    trace = synthetic(tmp_path / "t", name, 20)
    assert validate(trace.path) == []
    assert trace.manifest.counts.finished_queries == 20
    lengths = {one.doc_id: len((one.text or "").split()) for one in trace.documents()}
    shapes = profile_named(name).shapes(20, 0)
    for retrieval, shape in zip(trace.retrievals(), shapes, strict=True):
        context = final_context(retrieval.arrivals)
        assert sum(lengths[doc] for doc in context) == shape.context_tokens
        assert len(retrieval.query.text.split()) == shape.question_tokens
        assert retrieval.arrivals[-1].arrival_us == shape.end_us


def test_the_same_bytes_for_a_seed(tmp_path: Path) -> None:
    first, second = synthetic(tmp_path / "a"), synthetic(tmp_path / "b")
    assert first.manifest == second.manifest
    assert first.sha256 == second.sha256
    assert synthetic(tmp_path / "c", seed=1).sha256 != first.sha256


def test_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = SynthOptions(5, privacy="urls")
    write_synthetic(path, profile_named("ragpulse"), WordTexts(0), options)
    assert validate(path) == []
    assert {one.text for one in Trace.open(path).documents()} == {None}


def test_like_another(tmp_path: Path) -> None:
    original = synthetic(tmp_path / "t", n=150)
    profile = measure(original, WordCounter())
    shapes = list(profile.shapes(600, 1))
    measured = list(profile.measured)
    assert {len(one.arrivals) for one in shapes} == {len(one.arrivals) for one in measured}
    for name in ("context_tokens", "end_us"):
        found = np.array([getattr(one, name) for one in shapes], dtype=np.float64)
        wanted = np.array([getattr(one, name) for one in measured], dtype=np.float64)
        assert found.mean() == pytest.approx(wanted.mean(), rel=0.02)
        assert np.percentile(found, [25, 50, 75, 95]) == pytest.approx(
            np.percentile(wanted, [25, 50, 75, 95]), rel=0.05
        )
    write_synthetic(tmp_path / "like", profile, WordTexts(0), SynthOptions(30))
    assert validate(tmp_path / "like") == []


def test_like_a_trace_with_failures(tmp_path: Path, trace_path: Path) -> None:
    profile = measure(Trace.open(trace_path), WordCounter())
    first, second = profile.measured
    assert [one.kind for one in first.arrivals] == [ArrivalKind.SEARCH] + 2 * [ArrivalKind.APPEND]
    assert [one.status for one in first.arrivals] == ["ok", "ok", "timeout"]
    assert [one.documents for one in second.arrivals] == [(0, 1), (1, 2, 0)]
    assert second.document_tokens == (1, 300, 2)
    write_synthetic(tmp_path / "like", profile, WordTexts(0), SynthOptions(10))
    assert validate(tmp_path / "like") == []


def test_like_a_trace_without_texts(tmp_path: Path, trace_path: Path) -> None:
    from s2l.workloads.manifest import Collector
    from s2l.workloads.trace_writer import TraceWriter

    path = tmp_path / "hidden"
    collector = Collector("c", "1")
    options = {"name": "h", "collector": collector, "licence": "MIT", "privacy": "urls"}
    with TraceWriter.create(path, **options) as writer:  # type: ignore[arg-type]
        for document in Trace.open(trace_path).documents():
            writer.add_document(document)
        writer.finish()
    with pytest.raises(TraceError, match="has no text to count tokens of"):
        measure(Trace.open(path), WordCounter())


def test_an_unknown_profile() -> None:
    with pytest.raises(TraceError, match="'x' is not one of stream2llm-crawl, stream2llm-anns"):
        profile_named("x")


SHAPES = """
import json, sys
from collections import deque
from pathlib import Path
from s2l.workloads.synth.profiles import profile_named

def peak_kib():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

profile = profile_named(sys.argv[1])
deque(profile.shapes(3_000, 0), maxlen=0)
before = peak_kib()
deque(profile.shapes(60_000, 0), maxlen=0)
print(json.dumps(peak_kib() - before))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_any_number_of_shapes_is_streamed() -> None:
    command = [sys.executable, "-c", SHAPES, "stream2llm-crawl"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found < 4_000  # as objects, 60,000 queries take more than 100 MiB
