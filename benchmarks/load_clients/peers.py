"""Other load generators: what they need, how they are started, what they report.

Each is told the same: so many streamed completions of 32 tokens at a constant rate, or at the times
of a trace. A reader gives the times to first token that it reports, in milliseconds, in the order
of its requests.
"""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sglang_client
from point import TOKENS, Point

from s2l.workloads.arrivals.base import OffsetsUs


@dataclass(frozen=True)
class Peer:
    """``requirements`` are installed into an environment of its own, made by ``python`` where one
    is named; without requirements it is that of the benchmark. The first word of ``command`` is a
    program in its ``bin`` folder. ``due_us`` is for one that draws its arrivals itself."""

    requirements: tuple[str, ...]
    command: Callable[[Point], list[str]]
    read_ttft_ms: Callable[[Point], list[float]]
    prepare: Callable[[Point], None] = Point.write_trace
    due_us: Callable[[Point], OffsetsUs] = Point.due_us
    python: str | None = None
    module: str | None = None
    """What must be importable in the benchmark's own environment."""
    alone: tuple[str, ...] = ()
    """Installed without what they ask for, which would be a whole engine for GPUs."""


def _guidellm(point: Point) -> list[str]:
    backend = f"kind=openai_http,target={point.url},model=mock,request_format=/v1/completions"
    data = f"kind=synthetic_text,prompt_tokens={point.prompt_tokens},output_tokens={TOKENS}"
    profile = f"kind=constant,rate={point.rate_qps:g}"
    if point.arrivals != "constant":
        source = {"kind": "json_file", "path": str(point.trace)}
        data = json.dumps({"kind": "trace_synthetic", "source": source})
        profile = "kind=replay,schedule_turn=timestamp,time_scale=0.001"
    return [
        *["guidellm", "run", "--disable-console", "--backend", backend, "--data", data],
        *["--profile", profile],
        *["--constraint", f"kind=max_requests,count={point.requests}"],
        *["--tokenizer", f"kind=huggingface_auto,model={point.tokenizer}"],
        *["--output", f"kind=json,path={point.folder / 'out.json'}"],
    ]


def _read_guidellm(point: Point) -> list[float]:
    report = json.loads((point.folder / "out.json").read_text())
    requests = report["benchmarks"][0]["requests"]["successful"]
    requests.sort(key=lambda r: r.get("request_start_time") or r.get("start_time") or 0)
    return [float(r["time_to_first_token_ms"]) for r in requests]


_VLLM = """
import argparse
from vllm.benchmarks.serve import add_cli_args, main
parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""The ``vllm`` command fails where the package is a build for CPUs."""


def _vllm(point: Point) -> list[str]:
    arrivals = [
        *["--dataset-name", "random", "--random-input-len", str(point.prompt_tokens)],
        *["--random-output-len", str(TOKENS), "--ignore-eos"],
        *["--request-rate", f"{point.rate_qps:g}", "--burstiness", "inf"],
    ]
    if point.arrivals != "constant":
        arrivals = [
            *["--dataset-name", "timed_trace", "--dataset-path", str(point.trace)],
            *["--timed-trace-sec-multiplier", "0.001"],
            *["--timed-trace-chunk-hash-size", str(point.prompt_tokens)],
        ]
    return [
        *["python", "-c", _VLLM, "--backend", "openai", "--base-url", point.url],
        *["--model", "mock", "--tokenizer", str(point.tokenizer), *arrivals],
        *["--num-prompts", str(point.requests), "--save-result", "--save-detailed"],
        *["--result-dir", str(point.folder), "--result-filename", "out.json"],
    ]


def _prepare_vllm(point: Point) -> None:
    """It sends traces as token ids, of which the mock knows only those that it has given out."""
    point.write_trace(hash_ids=True)
    if point.arrivals != "constant":
        vocabulary = json.loads((point.tokenizer / "tokenizer.json").read_text())["model"]["vocab"]
        text = " ".join(map(str, range(len(vocabulary))))
        body = json.dumps({"model": "mock", "prompt": text}).encode()
        urllib.request.urlopen(f"{point.url}/tokenize", body).close()


def _read_vllm(point: Point) -> list[float]:
    found: dict[str, Any] = json.loads((point.folder / "out.json").read_text())
    pairs = zip(found["start_times"], found["ttfts"], strict=True)
    return [1e3 * ttft for _, ttft in sorted(pairs)]


def _aiperf(point: Point) -> list[str]:
    arrivals = [
        *["--request-rate", f"{point.rate_qps:g}", "--arrival-pattern", "constant"],
        *["--request-count", str(point.requests), "--osl", str(TOKENS)],
        *["--isl", str(point.prompt_tokens)],
    ]
    if point.arrivals != "constant":
        arrivals = ["--input-file", str(point.trace), "--custom-dataset-type", "mooncake-trace"]
        arrivals += ["--fixed-schedule"]
    return [
        *["aiperf", "profile", "--model-names", "mock", "--url", point.url, "--streaming"],
        *["--endpoint-type", "completions", "--tokenizer", str(point.tokenizer), *arrivals],
        *["--ui-type", "none", "--export-level", "records"],
        *["--artifact-dir", str(point.folder)],
    ]


def _read_aiperf(point: Point) -> list[float]:
    lines = (point.folder / "profile_export.jsonl").read_text().splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: row["metadata"]["request_start_ns"])
    return [float(row["metrics"]["time_to_first_token"]["value"]) for row in rows]


def _inference_perf(point: Point) -> list[str]:
    return ["inference-perf", "--config_file", str(point.folder / "config.yml")]


def _prepare_inference_perf(point: Point) -> None:
    """A trace for constant rates, too: gaps of its own ``constant`` load are drawn at random."""
    midnight, file = datetime(2000, 1, 1, tzinfo=UTC), point.folder / "trace.csv"
    times = (midnight + timedelta(microseconds=us) for us in point.due_us().tolist())
    file.write_text(
        "".join(f"{at:%Y-%m-%d %H:%M:%S.%f},{point.prompt_tokens},{TOKENS}\n" for at in times)
    )
    trace = {"file": str(file), "format": "AzurePublicDataset"}
    stage = {"rate": point.rate_qps, "duration": max(1, round(point.requests / point.rate_qps))}
    config = {
        "load": {"type": "trace_replay", "trace": trace, "stages": [stage]},
        "api": {"type": "completion", "streaming": True},
        "server": {
            "type": "vllm",
            "model_name": "mock",
            "base_url": point.url,
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": str(point.tokenizer)},
        "data": {"type": "random", "trace": trace},
        "report": {"request_lifecycle": {"summary": True, "per_request": True}},
        "storage": {"local_storage": {"path": str(point.folder)}},
    }
    (point.folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML, too


def _read_inference_perf(point: Point) -> list[float]:
    (file,) = point.folder.rglob("per_request_lifecycle_metrics.json")
    rows = sorted(json.loads(file.read_text()), key=lambda row: row["start_time"])
    firsts = (_first_token_s(row["info"]) for row in rows)
    return [1e3 * (first - row["start_time"]) for row, first in zip(rows, firsts, strict=True)]


def _first_token_s(info: dict[str, Any]) -> float:
    """Since 0.6 it stands among the metrics of the response."""
    times = (info.get("response_metrics") or info)["output_token_times"]
    return float(times[0])


_SGLANG = """
torch==2.13.0 transformers==5.19.0 numpy aiohttp msgspec orjson requests tqdm psutil pyzmq pybase64
pillow pydantic fastapi packaging IPython
"""
"""What its client imports of all that the whole engine asks for."""

PEERS: dict[str, Peer] = {
    "guidellm": Peer(("guidellm",), _guidellm, _read_guidellm),
    "aiperf": Peer(("aiperf",), _aiperf, _read_aiperf),
    "inference-perf": Peer(
        ("inference-perf",),
        _inference_perf,
        _read_inference_perf,
        _prepare_inference_perf,
        python="python3.12",
    ),
    "vllm": Peer((), _vllm, _read_vllm, _prepare_vllm, module="vllm"),
    "sglang": Peer(
        tuple(_SGLANG.split()),
        sglang_client.command,
        sglang_client.read_ttft_ms,
        due_us=sglang_client.drawn_us,
        alone=("sglang==0.5.23", "triton"),
    ),
}
