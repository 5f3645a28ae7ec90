"""Servers in the foreground: they say where they are, serve, and end by Ctrl-C with 0."""

import signal
import subprocess
import urllib.request

import pytest


@pytest.mark.parametrize(
    ("command", "path"), [("mock", "/health"), ("site", "/search?q=json.dumps&n=3")]
)
def test_a_server_says_where_it_is_and_stops_by_interrupt(
    program: str, command: str, path: str
) -> None:
    arguments = [program, command, "--port", "0"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = next(word for word in line.split() if word.startswith("http://"))
        with urllib.request.urlopen(url + path, timeout=20) as response:
            assert response.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == "stopped\n"
