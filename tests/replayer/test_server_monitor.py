"""Server metrics over real sockets: names, times, failures, a bound on memory."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from s2l.replayer import server_monitor
from s2l.replayer.prefix_cache import reset_prefix_cache
from s2l.replayer.run import SERVER_SCHEMA
from s2l.replayer.server_http import ServerHttp
from s2l.replayer.server_metrics import read_metrics
from s2l.replayer.server_monitor import ServerMonitor
from s2l.serving_adapter.base import ServingError

VLLM = b"""# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0"} 2.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:prefix_cache_queries_total{engine="0"} 1.5e+03
vllm:prefix_cache_hits_total{engine="0"} 700.0
vllm:num_preemptions_total{engine="0"} 0.0
vllm:prompt_tokens_total 2000
vllm:prompt_tokens_created 1.7e9
vllm:generation_tokens_total 90
vllm:request_prompt_tokens_sum 5.0
# TYPE s2l_sessions gauge
s2l_sessions{state="open"} 5.0
s2l_chunks_total 12.0
s2l_chunks_created 1.7e9
s2l_item_to_prefilled_seconds_bucket{le="0.01"} 4
s2l_item_to_prefilled_seconds_sum 1.25
"""


@dataclass
class Server:
    """A server whose page and statuses a test sets."""

    page: bytes = VLLM
    status: int = 200
    statuses: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    answered: threading.Condition = field(default_factory=threading.Condition)
    url: str = ""

    def wait_for(self, n: int) -> None:
        with self.answered:
            assert self.answered.wait_for(lambda: len(self.asked) >= n, 10)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status = state.statuses.get(self.path, state.status)
            body = state.page if status == 200 else b"no"
            with state.answered:
                state.asked.append((self.command, self.path, self.headers["Authorization"]))
                state.answered.notify_all()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test looks at ``asked``."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield state
    httpd.shutdown()
    httpd.server_close()


def clock() -> Callable[[], int]:
    start_ns = time.perf_counter_ns()
    return lambda: (time.perf_counter_ns() - start_ns) // 1000


def test_a_page_of_vllm() -> None:
    assert read_metrics(VLLM) == {
        "running": 7.0,
        "waiting": 2.0,
        "kv_usage": 0.75,
        "preemptions": 0.0,
        "prefix_queries": 1500.0,
        "prefix_hits": 700.0,
        "prompt_tokens": 2000.0,
        "output_tokens": 90.0,
        "s2l_sessions{state=open}": 5.0,
        "s2l_chunks_total": 12.0,
        "s2l_item_to_prefilled_seconds_sum": 1.25,
    }


@pytest.mark.parametrize(
    ("page", "values"),
    [
        (
            b'sglang:num_running_reqs{model="m"} 2\nsglang:num_queue_reqs 1\n'
            b"sglang:token_usage 0.5\nsglang:prompt_tokens_total 8\n"
            b'sglang:cached_tokens_total{cache_source="device"} 3\n'
            b'sglang:cached_tokens_total{cache_source="host"} 1\n',
            {"running": 2, "waiting": 1, "kv_usage": 0.5, "prefix_hits": 4, "prompt_tokens": 8},
        ),
        (
            b"llamacpp:requests_processing 4\nllamacpp:requests_deferred 46\n"
            b"llamacpp:tokens_predicted_total 17029\nllamacpp:tokens_predicted_seconds_total 9\n",
            {"running": 4, "waiting": 46, "output_tokens": 17029},
        ),
        (
            b"tgi_batch_current_size 2\ntgi_queue_size 0\ntgi_request_input_length_sum 55\n"
            b'tgi_request_input_length_bucket{le="1"} 5\ntgi_request_generated_tokens_sum 7\n',
            {"running": 2, "waiting": 0, "prompt_tokens": 55, "output_tokens": 7},
        ),
        (
            b"vllm:gpu_cache_usage_perc 0.3\nvllm:kv_cache_usage_perc 0.4\r\n",
            {"kv_usage": 0.4},  # both spellings at once are one thing
        ),
        (b"vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\n", {}),
        (b"", {}),
        (b"<html>metrics</html>", {}),
        (b"python_gc_objects_collected_total 5\n", {}),
    ],
)
def test_pages_of_other_servers(page: bytes, values: dict[str, float]) -> None:
    assert read_metrics(page) == values


def test_samples_from_start_to_stop(server: Server) -> None:
    monitor = ServerMonitor(f"{server.url}/v1", 0.02, api_key="key-1")
    now_us = clock()
    monitor.start(now_us, "wait")
    server.wait_for(3)
    monitor.stop()
    until_us = now_us()
    first = len(monitor.samples)
    assert first >= 3
    server.page = b"vllm:num_requests_running 9\n"
    monitor.start(now_us, "stream", "50%")
    server.wait_for(len(server.asked) + 1)
    monitor.stop()
    assert set(server.asked) == {("GET", "/metrics", "Bearer key-1")}
    times = [sample.time_us for sample in monitor.samples]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[first - 1] <= until_us <= times[first]
    assert {sample.delivery for sample in monitor.samples[first:]} == {"stream"}
    assert monitor.samples[-1].values == {"running": 9.0}
    assert monitor.notes == []
    (batch,) = monitor.batches()
    assert batch.schema == SERVER_SCHEMA
    assert batch.num_rows == len(list(monitor.rows()))
    assert batch.to_pylist()[-1] == {
        "delivery": "stream",
        "time_us": times[-1],
        "name": "running",
        "value": 9.0,
        "answer_at": "50%",
    }


def test_the_last_sample_is_taken_after_the_end(server: Server) -> None:
    monitor = ServerMonitor(server.url, 3600)
    now_us = clock()
    monitor.start(now_us, "wait")
    server.wait_for(1)
    end_us = now_us()
    monitor.stop()
    assert len(monitor.samples) == 2
    assert monitor.samples[-1].time_us >= end_us


@pytest.mark.parametrize(("status", "page"), [(404, b""), (200, b"<html>hello</html>"), (302, b"")])
def test_a_server_without_metrics_is_asked_once(server: Server, status: int, page: bytes) -> None:
    server.status, server.page = status, page
    monitor = ServerMonitor(server.url, 0.001)
    for _ in range(2):
        monitor.start(clock(), "wait")
        monitor.stop()
    assert len(server.asked) == 1
    assert list(monitor.rows()) == []
    assert list(monitor.batches()) == []
    found = "no metrics that we know" if status == 200 else f"HTTP {status}"
    assert monitor.notes == [f"no server metrics: {server.url}/metrics: {found}"]


def test_a_server_that_dies_is_one_note() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    monitor = ServerMonitor(f"http://127.0.0.1:{port}", 3600)
    monitor.start(clock(), "wait")
    monitor.stop()
    (note,) = monitor.notes
    assert note.startswith("server metrics: ")
    assert note.endswith("samples failed (/metrics: nothing listens)")


def test_a_page_that_breaks_off_is_a_failed_sample(server: Server) -> None:
    server.page = VLLM + b"s2l_sessions x y z\n"
    monitor = ServerMonitor(server.url, 3600)
    monitor.start(clock(), "wait")
    server.wait_for(1)
    monitor.stop()
    assert "samples failed" in monitor.notes[0]


def test_memory_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_monitor, "MOST_SAMPLES", 8)
    monitor = ServerMonitor(server.url, 0.001)
    monitor.start(clock(), "wait")
    server.wait_for(40)
    monitor.stop()
    assert len(monitor.samples) <= 9
    assert monitor.interval_s >= 0.004
    times = [sample.time_us for sample in monitor.samples]
    assert times == sorted(times)


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_an_interval_is_above_0(interval: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        ServerMonitor("http://127.0.0.1:1", interval)


def test_resetting_the_prefix_cache(server: Server) -> None:
    assert reset_prefix_cache(f"{server.url}/v1", "key-1")
    assert server.asked == [("POST", "/reset_prefix_cache", "Bearer key-1")]
    server.statuses = {"/reset_prefix_cache": 404}
    assert reset_prefix_cache(server.url)
    assert server.asked[-1] == ("POST", "/flush_cache", None)
    server.statuses["/flush_cache"] = 405
    assert not reset_prefix_cache(server.url)
    server.statuses = {"/reset_prefix_cache": 401}
    with pytest.raises(ServingError, match="/reset_prefix_cache: HTTP 401 no"):
        reset_prefix_cache(server.url)


def test_an_idle_connection_that_was_closed_is_opened_again() -> None:
    """A server may close a kept connection whenever it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        http = ServerHttp(f"http://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=serve)
        thread.start()
        assert http.ask("GET", "/a") == (200, b"ok")
        assert http.ask("GET", "/b") == (200, b"ok")
        thread.join(10)
        http.close()
