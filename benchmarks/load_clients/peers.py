"""Other load generators: what they need, how they are started, what they report.

Each is told the same: so many streamed completions of 32 tokens at a constant rate. A reader gives
the times to first token that it reports, in milliseconds, in the order of its requests.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKENS = 32


@dataclass(frozen=True)
class Point:
    """What a client is asked to do, and the folder where it may write."""

    url: str
    rate_qps: float
    requests: int
    prompt_tokens: int
    tokenizer: Path
    folder: Path


@dataclass(frozen=True)
class Peer:
    """``requirements`` are installed into an environment of its own, made by ``python`` where one
    is named; without requirements it is that of the benchmark. The first word of ``command`` is a
    program in its ``bin`` folder."""

    requirements: tuple[str, ...]
    command: Callable[[Point], list[str]]
    read_ttft_ms: Callable[[Point], list[float]]
    prepare: Callable[[Point], None] = lambda _: None
    python: str | None = None
    module: str | None = None
    """What must be importable in the benchmark's own environment."""
    large: bool = False
    """Its installation takes so long that it must be asked for by name."""


def _guidellm(point: Point) -> list[str]:
    backend = f"kind=openai_http,target={point.url},model=mock,request_format=/v1/completions"
    data = f"kind=synthetic_text,prompt_tokens={point.prompt_tokens},output_tokens={TOKENS}"
    return [
        *["guidellm", "run", "--disable-console", "--backend", backend, "--data", data],
        *["--profile", f"kind=constant,rate={point.rate_qps:g}"],
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
    return [
        *["python", "-c", _VLLM, "--backend", "openai", "--base-url", point.url],
        *["--model", "mock", "--tokenizer", str(point.tokenizer), "--dataset-name", "random"],
        *["--random-input-len", str(point.prompt_tokens), "--random-output-len", str(TOKENS)],
        *["--num-prompts", str(point.requests), "--request-rate", f"{point.rate_qps:g}"],
        *["--burstiness", "1e9", "--ignore-eos", "--save-result", "--save-detailed"],
        *["--result-dir", str(point.folder), "--result-filename", "out.json"],
    ]


def _read_seconds(point: Point) -> list[float]:
    """vLLM's and SGLang's results: lists by request, in seconds."""
    lines = (point.folder / "out.json").read_text().splitlines()
    found: dict[str, Any] = json.loads(lines[-1] if len(lines) == 1 else "\n".join(lines))
    ttfts = found["ttfts"]
    starts = found.get("start_times") or list(range(len(ttfts)))
    return [1e3 * ttft for _, ttft in sorted(zip(starts, ttfts, strict=True))]


def _sglang(point: Point) -> list[str]:
    host, port = point.url.removeprefix("http://").split(":")
    return [
        *["python", "-m", "sglang.bench_serving", "--backend", "vllm"],
        *["--host", host, "--port", port, "--model", "mock", "--tokenizer", str(point.tokenizer)],
        *["--dataset-name", "random-ids", "--random-input-len", str(point.prompt_tokens)],
        *["--random-output-len", str(TOKENS), "--random-range-ratio", "1"],
        *["--num-prompts", str(point.requests), "--request-rate", f"{point.rate_qps:g}"],
        *["--output-details", "--output-file", str(point.folder / "out.json")],
    ]


def _aiperf(point: Point) -> list[str]:
    return [
        *["aiperf", "profile", "--model-names", "mock", "--url", point.url, "--streaming"],
        *["--endpoint-type", "completions", "--tokenizer", str(point.tokenizer)],
        *["--request-rate", f"{point.rate_qps:g}", "--arrival-pattern", "constant"],
        *["--request-count", str(point.requests), "--osl", str(TOKENS)],
        *["--isl", str(point.prompt_tokens), "--ui-type", "none", "--export-level", "records"],
        *["--artifact-dir", str(point.folder)],
    ]


def _read_aiperf(point: Point) -> list[float]:
    lines = (point.folder / "profile_export.jsonl").read_text().splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: row["metadata"]["request_start_ns"])
    return [float(row["metrics"]["time_to_first_token"]["value"]) for row in rows]


def _inference_perf(point: Point) -> list[str]:
    return ["inference-perf", "--config_file", str(point.folder / "config.yml")]


def _write_config(point: Point) -> None:
    seconds = max(1, round(point.requests / point.rate_qps))
    lengths = dict.fromkeys(("min", "max", "mean"), point.prompt_tokens) | {"std_dev": 0}
    answers = dict.fromkeys(("min", "max", "mean"), TOKENS) | {"std_dev": 0}
    count = {"total_count": point.requests}
    config = {
        "load": {"type": "constant", "stages": [{"rate": point.rate_qps, "duration": seconds}]},
        "api": {"type": "completion", "streaming": True},
        "server": {
            "type": "vllm",
            "model_name": "mock",
            "base_url": point.url,
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": str(point.tokenizer)},
        "data": {
            "type": "random",
            "input_distribution": lengths | count,
            "output_distribution": answers | count,
        },
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


PEERS: dict[str, Peer] = {
    "guidellm": Peer(("guidellm",), _guidellm, _read_guidellm),
    "aiperf": Peer(("aiperf",), _aiperf, _read_aiperf),
    "inference-perf": Peer(
        ("inference-perf",),
        _inference_perf,
        _read_inference_perf,
        _write_config,
        python="python3.12",
    ),
    "vllm": Peer((), _vllm, _read_seconds, module="vllm"),
    "sglang": Peer(("sglang",), _sglang, _read_seconds, large=True),
}
