"""A site as a Space: what is there is kept, one commit adds to it, a lost race changes nothing."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from s2l.workloads.sharing.errors import BadAddress, TransferFailed
from s2l.workloads.sharing.spaces import SpaceSite, add_to_space, space_address


class FakeSpaces:
    """One Space, as much of the Hub as adding to it needs."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] | None = None
        self.created: dict[str, Any] = {}
        self.commits = 0
        self.tokens: set[str] = set()
        self.refuse = 0

    @property
    def head(self) -> str:
        return sha1(str(self.commits).encode()).hexdigest()

    def app(self) -> web.Application:
        app = web.Application()
        name = "me/site"
        app.add_routes(
            [
                web.post("/api/repos/create", self._create),
                web.post("/api/validate-yaml", self._yaml),
                web.get(f"/api/spaces/{name}", self._info),
                web.post(f"/api/spaces/{name}/preupload/main", self._preupload),
                web.post(f"/api/spaces/{name}/commit/main", self._commit),
                web.get(f"/spaces/{name}/resolve/{{revision}}/{{path:.+}}", self._resolve),
            ]
        )
        return app

    async def _create(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization", ""))
        if self.files is not None:
            return web.json_response({"error": "exists", "url": f"{self.url}/me/site"}, status=409)
        self.created = await request.json()
        self.files = {".gitattributes": b"", "README.md": b"mine"}
        return web.json_response({"url": f"{self.url}/spaces/me/site", "name": "me/site"})

    async def _yaml(self, request: web.Request) -> web.Response:
        return web.json_response({"errors": [], "warnings": []})

    async def _info(self, request: web.Request) -> web.Response:
        siblings = [{"rfilename": name} for name in self.files or ()]
        return web.json_response({"id": "me/site", "sha": self.head, "siblings": siblings})

    async def _preupload(self, request: web.Request) -> web.Response:
        files = [
            {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
            for one in (await request.json())["files"]
        ]
        return web.json_response({"files": files})

    async def _commit(self, request: web.Request) -> web.Response:
        if self.refuse:
            return web.json_response({"error": "changed meanwhile"}, status=self.refuse)
        lines = [json.loads(line) for line in (await request.text()).splitlines()]
        assert lines[0]["value"]["parentCommit"] == self.head
        for one in lines[1:]:
            assert one["key"] == "file"
            assert self.files is not None
            self.files[one["value"]["path"]] = base64.b64decode(one["value"]["content"])
        self.commits += 1
        address = f"{self.url}/spaces/me/site/commit/{self.head}"
        body = {"commitUrl": address, "commitOid": self.head}
        return web.json_response(body)

    async def _resolve(self, request: web.Request) -> web.Response:
        assert request.match_info["revision"] == self.head
        data = (self.files or {}).get(request.match_info["path"])
        if data is None:
            return web.Response(status=404)
        return web.Response(body=data, headers={"X-Repo-Commit": self.head, "ETag": '"x"'})


@pytest.fixture
def spaces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeSpaces]:
    fake = FakeSpaces()
    loop = asyncio.new_event_loop()
    started = threading.Event()

    def work() -> None:
        runner = web.AppRunner(fake.app(), shutdown_timeout=0.1)
        loop.run_until_complete(runner.setup())
        loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
        fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert started.wait(10)
    monkeypatch.setenv("HF_ENDPOINT", fake.url)
    monkeypatch.setenv("HF_TOKEN", "hf_canary")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    yield fake
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def _add(name: str, seen: list[SpaceSite]) -> str:
    def build(site: Path, before: SpaceSite) -> None:
        seen.append(before)
        (site / "runs").mkdir()
        (site / "runs" / name).write_text(name)
        (site / "site.json").write_bytes((before.content or b"") + name.encode())
        (site / "README.md").write_text("ours")

    return add_to_space("me/site", "site.json", build)


def test_it_is_made_and_added_to(spaces: FakeSpaces) -> None:
    seen: list[SpaceSite] = []
    assert _add("one", seen) == spaces.head
    assert (spaces.created["type"], spaces.created["sdk"]) == ("space", "static")
    _add("two", seen)
    assert [site.content for site in seen] == [None, b"one"]
    assert spaces.files == {
        ".gitattributes": b"",
        "README.md": b"mine",
        "runs/one": b"one",
        "runs/two": b"two",
        "site.json": b"onetwo",
    }
    assert spaces.tokens == {"Bearer hf_canary"}


@pytest.mark.parametrize("status", [403, 412])
def test_refused_it_is_as_it_was(spaces: FakeSpaces, status: int) -> None:
    _add("one", [])
    before = dict(spaces.files or {})
    spaces.refuse = status
    with pytest.raises(TransferFailed, match="no file was changed") as failure:
        _add("two", [])
    assert spaces.files == before
    assert "hf_canary" not in str(failure.value)


def test_an_answer_that_was_lost_is_no_refusal(spaces: FakeSpaces) -> None:
    spaces.refuse = 500
    with pytest.raises(TransferFailed, match="the whole commit may be there or nothing of it"):
        _add("one", [])


def test_addresses() -> None:
    assert space_address("Me/my.site") == "https://me-my-site.static.hf.space/"
    for wrong in ("me", "me/../x", "me/site@v1", "hf:me/site"):
        with pytest.raises(BadAddress, match="write user/name"):
            space_address(wrong)
