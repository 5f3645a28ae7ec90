"""What a GPU cannot do is refused anywhere; what it does is compared with the CPU where one is."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.gpu import check_codes_fit_gpu, check_fits_gpu, check_gpu
from s2l.collectors.ann.index import VectorIndex, build_index, open_index
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.pool import Pool
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import Matrix

SEARCH = SearchSettings(k=7, lists_probed=12)


def why_no_gpu() -> str:
    try:
        check_gpu()
    except AnnError as error:
        return str(error)
    return ""


needs_gpu = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())


def opened(folder: Path, vectors: Matrix, kind: str, *, gpu: bool) -> VectorIndex:
    settings = IndexSettings(kind=kind, lists=40)
    if not folder.exists():
        build_index(vectors, settings, folder, "content")
    return open_index(vectors, settings, folder, "content", gpu=gpu)


def pools(index: VectorIndex, question: Question) -> list[Pool]:
    """After every step of every stage."""
    found = [Pool()]
    for stage in index.stages(SEARCH, SEARCH.k):
        found += stage.steps(question, found[-1])
    return found[1:]


@needs_gpu
@pytest.mark.parametrize("kind", ["ivf-flat", "ivf-pq"])
def test_a_gpu_finds_what_the_cpu_finds(
    tmp_path: Path, vectors: Matrix, questions: Matrix, kind: str
) -> None:
    cpu, gpu = (opened(tmp_path / "i", vectors, kind, gpu=gpu) for gpu in (False, True))
    same = total = 0
    for vector in questions[:, np.newaxis]:
        question = Question("", vector)
        for one, other in zip(pools(cpu, question), pools(gpu, question), strict=True):
            np.testing.assert_allclose(other.costs, one.costs, rtol=0, atol=2e-3)
            same += one.rows == other.rows
            total += 1
        rows = [
            ProgressiveSearch(index.stages(SEARCH, 7), 7).run(question, lambda: 0).rows
            for index in (cpu, gpu)
        ]
        assert len(set(rows[0]) & set(rows[1])) >= 6  # scores may be equal to rounding
    assert same / total > 0.95


def test_a_machine_without_one_is_refused_before_anything_is_done(
    tmp_path: Path, vectors: Matrix
) -> None:
    if not (why := why_no_gpu()):
        pytest.skip("this machine has a GPU that faiss sees")
    assert "leave out --gpu" in why
    with pytest.raises(AnnError, match="leave out --gpu"):
        opened(tmp_path / "i", vectors, "ivf-flat", gpu=True)


@pytest.mark.parametrize(
    ("kind", "search", "width", "message"),
    [
        ("hnsw", {}, 5, "hnsw has no GPU version; use ivf-flat or ivf-pq"),
        ("ivf-disk", {}, 5, "ivf-disk has no GPU version"),
        ("ivf-flat", {"lists_probed": 2049}, 5, r"2049 lists probed: on a GPU .* at most 2048"),
        ("ivf-flat", {"k": 5, "reranked": 3000}, 3000, "3000 documents: on a GPU"),
        ("ivf-pq", {"k": 600, "refined": 4}, 600, "2400 documents: on a GPU"),
    ],
)
def test_searches_that_no_gpu_does(
    kind: str, search: dict[str, Any], width: int, message: str
) -> None:
    with pytest.raises(AnnError, match=message):
        check_fits_gpu(kind, SearchSettings(**search), width)


def test_what_a_gpu_does() -> None:
    check_fits_gpu("ivf-flat", SearchSettings(k=600, lists_probed=2048), 2048)
    check_codes_fit_gpu(IndexSettings(kind="ivf-pq"), 384)  # 48 bytes
    check_codes_fit_gpu(IndexSettings(kind="ivf-flat"), 768)
    with pytest.raises(AnnError, match=r"96 bytes: a GPU takes 1, 2, 3, 4, 8, .* 32, 48; give"):
        check_codes_fit_gpu(IndexSettings(kind="ivf-pq"), 768)


def test_a_faiss_that_cannot_be_imported_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As that for GPUs is where CUDA's libraries are not."""
    (tmp_path / "faiss.py").write_text("raise OSError('libcublas.so.12: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(importlib.import_module("sys").modules, "faiss")
    with pytest.raises(AnnError, match="faiss is installed and cannot be imported: libcublas"):
        check_gpu()
