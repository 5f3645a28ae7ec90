"""A server that speaks what the Hub speaks, and misbehaves when told to."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from typing import Any

from aiohttp import web

REPO = "/{owner}/{name}"


@dataclass
class FakeHub:
    """Repositories with commits; large files go to a store and are redirected to."""

    url: str = ""
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    heads: dict[tuple[str, str], str] = field(default_factory=dict)
    store: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    cut_after: int | None = None
    cuts: int = 1_000
    corrupt: str | None = None
    hold_put: int | None = None
    puts: int = 0
    put_held: threading.Event = field(default_factory=threading.Event)

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """What a visitor sees."""
        return self.commits[self.heads.get((repo, revision), revision)]

    def commit(self, repo: str, revision: str, files: dict[str, bytes]) -> str:
        """Make a commit and let the branch name it."""
        text = json.dumps({path: sha256(data).hexdigest() for path, data in files.items()})
        oid = sha1(f"{repo}{len(self.commits)}{text}".encode()).hexdigest()
        self.commits[oid] = files
        self.heads[repo, revision] = oid
        return oid

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30, middlewares=[self._seen])
        app.add_routes(
            [
                web.post("/api/repos/create", self._create),
                web.post("/api/validate-yaml", self._yaml),
                web.get(f"/api/datasets{REPO}/revision/{{revision}}", self._revision),
                web.post(f"/api/datasets{REPO}/branch/{{revision}}", self._branch),
                web.post(f"/api/datasets{REPO}/preupload/{{revision}}", self._preupload),
                web.post(f"/api/datasets{REPO}/commit/{{revision}}", self._commit),
                web.post(f"/datasets{REPO}.git/info/lfs/objects/batch", self._batch),
                web.put("/store/{oid}", self._put),
                web.get("/store/{oid}", self._get),
                web.get(f"/datasets{REPO}/resolve/{{revision}}/{{path:.+}}", self._resolve),
                web.get(f"/api/models{REPO}", self._model),
                web.get(f"/api/models{REPO}/revision/{{revision}}", self._model),
                web.get(f"/api/models{REPO}/tree/{{revision}}", self._tree),
                web.get(f"{REPO}/resolve/{{revision}}/{{path:.+}}", self._model_file),
                web.get("/plain/{path:.+}", self._plain),
                web.put("/plain/{path:.+}", self._put_plain),
            ]
        )
        return app

    plain: dict[str, bytes] = field(default_factory=dict)

    @web.middleware
    async def _seen(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        token = request.headers.get("Authorization", "")
        self.tokens.setdefault(request.path.split("/")[1], set()).add(token)
        return await handler(request)

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        repo = f"{body['organization']}/{body['name']}" if body.get("organization") else ""
        if (repo, "main") in self.heads:
            return web.json_response({"error": "exists", "url": f"{self.url}/{repo}"}, status=409)
        self.commit(repo, "main", {".gitattributes": b""})
        return web.json_response({"url": f"{self.url}/datasets/{repo}", "name": repo})

    async def _yaml(self, request: web.Request) -> web.Response:
        assert (await request.json())["content"].startswith("---")
        return web.json_response({"errors": [], "warnings": []})

    async def _branch(self, request: web.Request) -> web.Response:
        repo, revision = _repo(request)
        self.heads.setdefault((repo, revision), self.heads[repo, "main"])
        return web.json_response({})

    async def _revision(self, request: web.Request) -> web.Response:
        repo, revision = _repo(request)
        oid = self.heads.get((repo, revision), revision)
        if oid not in self.commits:
            return web.json_response({"error": "none"}, status=404)
        siblings = [{"rfilename": path} for path in self.commits[oid]]
        return web.json_response({"id": repo, "sha": oid, "siblings": siblings, "tags": []})

    async def _preupload(self, request: web.Request) -> web.Response:
        files = (await request.json())["files"]
        modes = [
            {
                "path": one["path"],
                "uploadMode": "lfs" if one["path"].endswith(".parquet") else "regular",
                "shouldIgnore": False,
            }
            for one in files
        ]
        return web.json_response({"files": modes})

    async def _batch(self, request: web.Request) -> web.Response:
        objects = []
        for one in (await request.json())["objects"]:
            upload = {"href": f"{self.url}/store/{one['oid']}"}
            actions = {} if one["oid"] in self.store else {"actions": {"upload": upload}}
            objects.append({"oid": one["oid"], "size": one["size"], **actions})
        return web.json_response({"transfer": "basic", "objects": objects})

    async def _put(self, request: web.Request) -> web.Response:
        self.puts += 1
        if self.puts == self.hold_put:
            self.put_held.set()
            await asyncio.Event().wait()  # until whoever pushes is killed
        data = await request.read()
        assert sha256(data).hexdigest() == request.match_info["oid"]
        self.store[request.match_info["oid"]] = data
        return web.Response()

    async def _commit(self, request: web.Request) -> web.Response:
        repo, revision = _repo(request)
        lines = [json.loads(line) for line in (await request.text()).splitlines()]
        header = next(one["value"] for one in lines if one["key"] == "header")
        if header.get("parentCommit") not in (None, self.heads[repo, revision]):
            return web.json_response({"error": "moved"}, status=412)
        files = dict(self.files(repo, revision))
        for one in lines:
            value = one["value"]
            if one["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif one["key"] == "lfsFile":
                files[value["path"]] = self.store[value["oid"]]
            elif one["key"] == "deletedFile":
                del files[value["path"]]
        oid = self.commit(repo, revision, files)
        return web.json_response(
            {"commitUrl": f"{self.url}/datasets/{repo}/commit/{oid}", "commitOid": oid}
        )

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        repo, revision = _repo(request)
        path = request.match_info["path"]
        data = self.files(repo, revision).get(path)
        if data is None:
            return web.Response(status=404)
        if path == self.corrupt:
            data = bytes([data[0] ^ 1]) + data[1:]
        if not path.endswith(".parquet"):
            return web.Response(body=data)
        oid = sha256(data).hexdigest()
        self.store[oid] = data
        raise web.HTTPFound(f"{self.url.replace('127.0.0.1', 'localhost')}/store/{oid}")

    def _found(self, request: web.Request) -> tuple[str, dict[str, bytes]]:
        """A commit and its files; errors are told from one another by a header."""
        place = request.match_info
        repo, revision = f"{place['owner']}/{place['name']}", place.get("revision", "main")
        if all(name != repo for name, _ in self.heads):
            raise web.HTTPUnauthorized(headers={"X-Error-Code": "RepoNotFound"})
        oid = self.heads.get((repo, revision), revision)
        if oid not in self.commits:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RevisionNotFound"})
        return oid, self.commits[oid]

    async def _model(self, request: web.Request) -> web.Response:
        oid, files = self._found(request)
        place = request.match_info
        siblings = [{"rfilename": path} for path in files]
        info = {"id": f"{place['owner']}/{place['name']}", "sha": oid, "siblings": siblings}
        return web.json_response({**info, "modelId": info["id"], "tags": [], "private": False})

    async def _tree(self, request: web.Request) -> web.Response:
        _, files = self._found(request)
        rows = [
            {"type": "file", "path": path, "size": len(data), "oid": sha1(data).hexdigest()}
            for path, data in files.items()
        ]
        return web.json_response(rows)

    async def _model_file(self, request: web.Request) -> web.StreamResponse:
        """Weights are elsewhere, as large files are."""
        oid, files = self._found(request)
        data = files.get(request.match_info["path"])
        headers = {"X-Repo-Commit": oid}
        if data is None:
            raise web.HTTPNotFound(headers={**headers, "X-Error-Code": "EntryNotFound"})
        headers["ETag"] = f'"{sha1(data).hexdigest()}"'
        if not request.match_info["path"].endswith(".safetensors"):
            return web.Response(body=data, headers=headers)
        digest = sha256(data).hexdigest()
        self.store[digest] = data
        headers |= {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
        elsewhere = self.url.replace("127.0.0.1", "localhost")
        raise web.HTTPFound(f"{elsewhere}/store/{digest}", headers=headers)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        return await self._ranged(request, self.store[request.match_info["oid"]])

    async def _plain(self, request: web.Request) -> web.StreamResponse:
        data = self.plain.get(request.match_info["path"])
        return web.Response(status=404) if data is None else await self._ranged(request, data)

    async def _put_plain(self, request: web.Request) -> web.Response:
        self.plain[request.match_info["path"]] = await request.read()
        return web.Response(status=201)

    async def _ranged(self, request: web.Request, data: bytes) -> web.StreamResponse:
        at = 0
        cutting = self.cut_after is not None
        if cutting and self.cuts == 0:
            return web.Response(status=503)
        etag = f'"{sha256(data).hexdigest()}"'
        wanted = request.headers.get("Range")
        if wanted and request.headers.get("If-Range", etag) == etag:
            self.ranges.append(wanted)
            at = int(wanted.removeprefix("bytes=").partition("-")[0])
        headers = {"Content-Range": f"bytes {at}-{len(data) - 1}/{len(data)}"} if at else {}
        answer = web.StreamResponse(status=206 if at else 200, headers={**headers, "ETag": etag})
        answer.content_length = len(data) - at
        await answer.prepare(request)
        if cutting and len(data) - at > (self.cut_after or 0):
            self.cuts -= 1
            await answer.write(data[at : at + (self.cut_after or 0)])
            assert request.transport is not None
            request.transport.close()
            return answer
        await answer.write(data[at:])
        return answer


def _repo(request: web.Request) -> tuple[str, str]:
    place = request.match_info
    return f"{place['owner']}/{place['name']}", place["revision"]


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    """One that answers at its ``url``, on an event loop and a thread of its own."""
    fake = FakeHub()
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def serve() -> web.AppRunner:
        runner = web.AppRunner(fake.app(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def work() -> None:
        runner = loop.run_until_complete(serve())
        started.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield fake
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
