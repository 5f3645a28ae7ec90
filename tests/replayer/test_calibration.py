"""The client's own error, measured against a mock in another process."""

from pathlib import Path

import msgspec

from s2l.replayer import calibration


async def test_it_measures_what_it_says(tmp_path: Path) -> None:
    found = await calibration.calibrate(rate_qps=100, requests=30)
    assert (found["requests"], found["rate_qps"], found["adapter"]) == (30, 100, "openai")
    assert 0 <= found["lag_p99_ms"] < 1000
    assert 0 <= found["ttft_error_p50_ms"] <= found["ttft_error_p99_ms"] < 1000


async def test_it_is_measured_once_for_a_machine(tmp_path: Path) -> None:
    kept = {"lag_p99_ms": 0.5, "ttft_error_p50_ms": 0.1, "ttft_error_p99_ms": 0.4}
    file = tmp_path / f"calibration-{calibration._fingerprint()}.json"
    file.write_bytes(msgspec.json.encode(kept))
    assert await calibration.calibrated(tmp_path) == kept
