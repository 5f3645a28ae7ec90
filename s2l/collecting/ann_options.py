"""What ``s2l collect ann`` was asked for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.gpu import check_fits_gpu
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.latency import GAPS, AsMeasured, LatencyModel, TimeScale
from s2l.collectors.ann.model_source import PACKAGED, name_and_commit
from s2l.collectors.ann.passages import PassageSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnOptions:
    """``index`` and ``cache`` are folders; without an index, one in the cache is used."""

    corpus: Path
    cache: Path
    passages: PassageSettings
    indexed: IndexSettings
    search: SearchSettings
    index: Path | None = None
    rebuild: bool = False
    model: str = PACKAGED
    device: str = "cpu"
    batch_size: int = 32
    gpu: bool = False
    reranker: str | None = None
    time_scale: float | None = None
    gaps: str | None = None
    concurrency: int = 8
    searches: int = 1

    def __post_init__(self) -> None:
        self.latency(())  # raises on a wrong factor
        if self.gpu:
            check_fits_gpu(self.indexed.kind, self.search, self.width)
        if self.gpu and self.searches > 1:
            raise AnnError("an index on a GPU serves one search at a time: leave out --searches")

    @property
    def seed(self) -> int:
        """Of the index and of published gaps."""
        return self.indexed.seed

    @property
    def width(self) -> int:
        """Documents that a search is to find: those shown, or all that are reranked."""
        return max(self.search.k, self.search.reranked or 0)

    def index_folder(self, content: str) -> Path:
        """Where the index is: as given, or in the cache under a name for its corpus."""
        if self.index is not None:
            return self.index
        key = sha256(f"{content}{asdict(self.indexed)}".encode()).hexdigest()[:16]
        return self.cache / "indexes" / key

    def latency(self, updates: Sequence[int]) -> LatencyModel:
        """The latency model, for questions that have so many updates each."""
        if self.gaps is not None:
            return GAPS[self.gaps](updates, self.seed)
        return TimeScale(self.time_scale) if self.time_scale is not None else AsMeasured()

    def recorded(self) -> dict[str, Any]:
        """The settings that a trace depends on; no paths of this machine."""
        commits = {"embedder_commit": name_and_commit(self.model)[1]}
        reranker = None
        if self.reranker is not None:
            reranker, commits["reranker_commit"] = name_and_commit(self.reranker)
        return {
            "corpus": self.corpus.resolve().name,
            "passages": asdict(self.passages),
            "index": {**asdict(self.indexed), "gpu": self.gpu},
            "search": asdict(self.search),
            "reranker": reranker,
            **{name: commit for name, commit in commits.items() if commit is not None},
            "concurrency": self.concurrency,
            "searches": self.searches,
        }
