import importlib
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.exact import exact_rows, recall_at
from s2l.collectors.ann.index import build_index, content_hash, open_index
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.indexes.registry import INDEX_KINDS, index_kind
from s2l.collectors.ann.progressive_search import ProgressiveSearch
from s2l.collectors.ann.stage import Question
from s2l.collectors.ann.vectors import Matrix
from s2l.workloads.document import Document

faiss = importlib.import_module("faiss")

LISTS = 40
FLAT = IndexSettings(lists=LISTS)


def built(folder: Path, vectors: Matrix, settings: IndexSettings) -> Path:
    build_index(vectors, settings, folder, "content")
    return folder


@pytest.mark.parametrize("kind", INDEX_KINDS)
@pytest.mark.parametrize("probed", [3, 100])
def test_the_final_pool_is_that_of_the_plain_search(
    tmp_path: Path, vectors: Matrix, questions: Matrix, kind: str, probed: int
) -> None:
    settings = IndexSettings(kind=kind, lists=LISTS)
    index = open_index(vectors, settings, built(tmp_path / "i", vectors, settings), "content")
    # Refined from more than there are: as exact as the lists that were probed.
    search = SearchSettings(k=7, lists_probed=probed, refined=1000)
    progressive = ProgressiveSearch(index.stages(search, 7), 7)
    found = [progressive.run(Question("", q), lambda: 0).rows for q in questions[:, np.newaxis]]
    plain = _plain(index.index, vectors, questions, kind, probed)
    assert [list(rows) for rows in found] == plain
    exact = exact_rows(questions, vectors, 7).tolist()
    if probed == 100 and kind != "hnsw":
        assert found == [tuple(rows) for rows in exact]
    assert recall_at(found, exact, 7) > 0.75


def _plain(
    index: object, vectors: Matrix, questions: Matrix, kind: str, probed: int
) -> list[object]:
    if kind == "hnsw":
        parameters = faiss.SearchParametersHNSW(efSearch=128)
    else:
        parameters = faiss.SearchParametersIVF(nprobe=probed)
    wide = len(vectors) if kind == "ivf-pq" else 7
    _, rows = index.search(questions, wide, params=parameters)  # type: ignore[attr-defined]
    if kind != "ivf-pq":
        return list(rows.tolist())
    candidates = [row[row >= 0] for row in rows]
    scores = [vectors[row] @ q for row, q in zip(candidates, questions, strict=True)]
    return [c[np.argsort(-s)][:7].tolist() for c, s in zip(candidates, scores, strict=True)]


@pytest.mark.parametrize("kind", INDEX_KINDS)
def test_the_same_seed_gives_the_same_index(tmp_path: Path, vectors: Matrix, kind: str) -> None:
    settings = IndexSettings(kind=kind, lists=LISTS, seed=3)
    one, two = (built(tmp_path / name / "i", vectors, settings) for name in ("a", "b"))
    other = built(tmp_path / "c" / "i", vectors, replace(settings, seed=4))

    def same(folder: Path) -> bool:
        files = [file.name for file in sorted(one.iterdir()) if kind != "ivf-disk"]
        files = files or ["lists.ivfdata"]  # the index file has the path of its lists in it
        return all((one / f).read_bytes() == (folder / f).read_bytes() for f in files)

    assert same(two)
    assert not same(other)


def test_lists_on_disk_are_mapped_and_can_be_moved(tmp_path: Path, vectors: Matrix) -> None:
    settings = IndexSettings(kind="ivf-disk", lists=LISTS)
    built(tmp_path / "i", vectors, settings).rename(tmp_path / "moved")
    index = open_index(vectors, settings, tmp_path / "moved", "content")
    maps = Path("/proc/self/maps").read_text()
    assert f"{tmp_path}/moved/lists.ivfdata" in maps
    del index
    assert f"{tmp_path}/moved/lists.ivfdata" not in Path("/proc/self/maps").read_text()


def test_standard_output_stays_clean(
    tmp_path: Path, vectors: Matrix, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = IndexSettings(kind="ivf-disk", lists=LISTS)
    open_index(vectors, settings, built(tmp_path / "i", vectors, settings), "content")
    assert capfd.readouterr().out == ""


def test_another_corpus_dimension_or_settings(tmp_path: Path, vectors: Matrix) -> None:
    folder = built(tmp_path / "i", vectors, FLAT)
    open_index(vectors, FLAT, folder, "content")
    with pytest.raises(AnnError, match="the corpus or the model is another than"):
        open_index(vectors, FLAT, folder, "changed")
    with pytest.raises(AnnError, match="has 32 dimensions, and the model's vectors 16; build it"):
        open_index(np.ascontiguousarray(vectors[:, :16]), FLAT, folder, "content")
    with pytest.raises(AnnError, match="was built with seed 0, not 1"):
        open_index(vectors, replace(FLAT, seed=1), folder, "content")


def test_a_file_of_another_dimension_in_its_place(tmp_path: Path, vectors: Matrix) -> None:
    folder = built(tmp_path / "i", vectors, FLAT)
    other = built(tmp_path / "j", np.ascontiguousarray(vectors[:, :16]), FLAT)
    (folder / "index.faiss").write_bytes((other / "index.faiss").read_bytes())
    card = msgspec.json.decode((folder / "index.json").read_bytes())
    card["files"]["index.faiss"] = (folder / "index.faiss").stat().st_size
    (folder / "index.json").write_bytes(msgspec.json.encode(card))
    with pytest.raises(AnnError, match="holds 3000 vectors of 16 dimensions, not 3000 of 32"):
        open_index(vectors, FLAT, folder, "content")


@pytest.mark.parametrize("kind", ["ivf-flat", "ivf-disk"])
def test_files_cut_short_or_missing(tmp_path: Path, vectors: Matrix, kind: str) -> None:
    settings = replace(FLAT, kind=kind)
    folder = built(tmp_path / "i", vectors, settings)
    for file in sorted(folder.glob("*.*")):
        whole = file.read_bytes()
        file.write_bytes(whole[:-7])
        with pytest.raises(AnnError, match=rf"{file.name}: .*(cut short|damaged).*--rebuild"):
            open_index(vectors, settings, folder, "content")
        file.unlink()
        with pytest.raises(AnnError, match=rf"{file.name}: (missing|No such file)"):
            open_index(vectors, settings, folder, "content")
        file.write_bytes(whole)
    open_index(vectors, settings, folder, "content")


def test_a_damaged_index_of_the_right_size(tmp_path: Path, vectors: Matrix) -> None:
    folder = built(tmp_path / "i", vectors, FLAT)
    file = folder / "index.faiss"
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(AnnError, match="not a faiss index"):
        open_index(vectors, FLAT, folder, "content")


def test_only_an_index_is_replaced(tmp_path: Path, vectors: Matrix) -> None:
    folder = built(tmp_path / "i", vectors, FLAT)
    built(folder, vectors, replace(FLAT, seed=1))
    open_index(vectors, replace(FLAT, seed=1), folder, "content")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(AnnError, match="holds something else than an index"):
        built(tmp_path / "mine", vectors, FLAT)
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".part")] == []


def test_content_is_ids_texts_and_model() -> None:
    one = [Document.of_text(url="u", title="t", text="x")]
    other = [Document.of_text(url="u", title="t", text="y")]
    hashes = {content_hash(one, "m"), content_hash(other, "m"), content_hash(one, "n")}
    assert len(hashes) == 3
    assert content_hash(one, "m") in hashes


def test_small_corpora_and_settings_that_do_not_fit(tmp_path: Path, vectors: Matrix) -> None:
    one = np.ascontiguousarray(vectors[:1])
    for kind in ("ivf-flat", "ivf-disk", "hnsw"):
        settings = IndexSettings(kind=kind)
        index = open_index(one, settings, built(tmp_path / kind, one, settings), "content")
        stages = index.stages(SearchSettings(k=5), 5)
        assert ProgressiveSearch(stages, 5).run(Question("", one), lambda: 0).rows == (0,)
    with pytest.raises(AnnError, match="ivf-pq needs 256 passages or more"):
        built(tmp_path / "pq", one, IndexSettings(kind="ivf-pq"))
    with pytest.raises(AnnError, match="2 lists for 1 passages: give between 1 and 1"):
        built(tmp_path / "n", one, IndexSettings(lists=2))
    with pytest.raises(AnnError, match="codes of 5 bytes: 32 dimensions"):
        built(tmp_path / "m", vectors, IndexSettings(kind="ivf-pq", code_bytes=5))
    with pytest.raises(AnnError, match="'trees' is not one of ivf-flat, ivf-pq, ivf-disk, hnsw"):
        index_kind("trees")


def test_list_counts_follow_the_size() -> None:
    counts = {n: IndexSettings().list_count(n) for n in (1, 100, 10_000, 1_000_000)}
    assert counts == {1: 1, 100: 2, 10_000: 100, 1_000_000: 1000}
    assert IndexSettings().code_size(384) == 48
    assert IndexSettings().code_size(100) == 10
    assert IndexSettings().code_size(7) == 1


@pytest.mark.parametrize("wrong", [{"k": 0}, {"stop_when": 0}, {"reranked": 4}])
def test_search_settings_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(AnnError, match="give"):
        SearchSettings(**wrong)
