"""Flipped bytes and cut files, everywhere: refused, or exactly what was promised."""

import json
import random
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from s2l.workloads.sharing.errors import NotTrusted
from s2l.workloads.sharing.inspector import Inspector
from s2l.workloads.sharing.limits import GiB, Limits
from s2l.workloads.trace import Trace

LIMITS = Limits(memory_bytes=2 * GiB, cpu_s=20, wall_s=30)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """One to eight flipped bits, or a cut, or bytes that are zero."""
    kind = draw.randrange(4)
    if kind == 0:
        return data[: draw.randrange(len(data))]
    changed = bytearray(data)
    if kind == 1:
        at = draw.randrange(len(data))
        changed[at : at + draw.randrange(1, 64)] = bytes(min(8, len(data) - at))
        return bytes(changed)
    for _ in range(draw.randrange(1, 9)):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def promised(folder: Path) -> dict[str, str]:
    """The hashes in the manifest."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    return {entry["path"]: entry["sha256"] for entry in manifest["files"]}


def resealed(manifest: bytes, name: str, data: bytes) -> bytes:
    """A manifest that promises the damaged file, so that its bytes get to the readers."""
    found = json.loads(manifest)
    for entry in found["files"]:
        if entry["path"] == name:
            entry |= {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    return json.dumps(found).encode()


def fuzz(ready: Trace, tmp_path: Path, cases: int, seed: int) -> Counter[str]:
    """Damage one file in each case; in half of them the manifest is made to agree."""
    draw = random.Random(seed)
    folder = tmp_path / "fuzzed"
    shutil.copytree(ready.path, folder)
    good = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    names = sorted(good)
    counts: Counter[str] = Counter()
    with Inspector(LIMITS) as inspector:
        for case in range(cases):
            name = draw.choice(names)
            data = damaged(good[name], draw)
            (folder / name).write_bytes(data)
            if case % 2 and name.endswith(".parquet"):
                text = resealed(good["manifest.json"], name, data)
                (folder / "manifest.json").write_bytes(text)
            counts[_outcome(inspector, folder, data == good[name])] += 1
            for changed in (name, "manifest.json"):
                (folder / changed).write_bytes(good[changed])
    return counts


def _outcome(inspector: Inspector, folder: Path, same: bool) -> str:
    try:
        inspector.check(folder)
    except NotTrusted as refused:
        return "contained" if "looking at it" in str(refused) else "refused"
    for path, digest in promised(folder).items():
        assert sha256((folder / path).read_bytes()).hexdigest() == digest
    list(Trace.open(folder).retrievals())
    list(Trace.open(folder).documents())
    return "the same" if same else "accepted"


def test_some_cases(ready: Trace, tmp_path: Path) -> None:
    counts = fuzz(ready, tmp_path, 200, seed=1)
    assert counts.total() == 200
    assert counts["refused"] > 150


@pytest.mark.slow
def test_ten_thousand_cases(ready: Trace, tmp_path: Path) -> None:
    counts = fuzz(ready, tmp_path, 10_000, seed=2)
    print(dict(counts))
    assert counts.total() == 10_000
    assert counts["refused"] > 7_500
