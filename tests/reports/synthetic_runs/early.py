"""A run that asked its questions at moments before the retrieval's end."""

from pathlib import Path
from typing import Any

from synthetic_runs.request_rows import request, request_table
from synthetic_runs.run_folder import run_info, write_run

from s2l.replayer.run import PassWindow

PASS_US = 100_000_000
QUERIES = 8
_RETRIEVAL_US = 2_000_000


def asked_early(path: Path, *moments: str | None, **changes: Any) -> Path:
    """Both deliveries of eight queries, a second apart, at each moment: a pass of each after the
    other, 100 s apart. Streaming takes 0.1 s to the first token; waiting as many times that as the
    moment has come: 0.2 s at the first, 0.3 s at the second. Only the last moment's answers are
    right."""
    rows, windows = [], []
    for turn, moment in enumerate(moments):
        for delivery in ("stream", "wait"):
            start = len(windows) * PASS_US
            factor = turn + 2 if delivery == "wait" else 1
            mine = [_row(i, delivery, moment, start, 100_000 * factor) for i in range(QUERIES)]
            if turn < len(moments) - 1:
                mine = [row | {"output_text": "another module"} for row in mine]
            rows += mine
            ends = max(row["end_us"] for row in mine)
            window = PassWindow(delivery=delivery, start_us=start, end_us=ends, answer_at=moment)
            windows.append(window)
    info = run_info(**{"passes": windows} | changes)
    queries = [(f"q{i}", f"Question {i}?", ["functools"]) for i in range(QUERIES)]
    return write_run(path, request_table(*rows), info=info, queries=queries)


def _row(i: int, delivery: str, moment: str | None, pass_us: int, ttft_us: int) -> dict[str, Any]:
    start = pass_us + i * 1_000_000
    share = 1.0 if moment is None else float(moment.removesuffix("%")) / 100
    due = start + round(_RETRIEVAL_US * share)
    times = [due + ttft_us + at * 10_000 for at in range(3)]
    return request(
        request_id=f"{delivery}@{moment}-{i}",
        query_id=f"q{i}",
        delivery=delivery,
        answer_at=moment,
        start_intended_us=start,
        start_us=start,
        context_intended_us=due,
        context_us=due,
        first_token_us=times[0],
        last_token_us=times[-1],
        end_us=times[-1],
        token_us=times,
    )
