"""An index of a corpus: built, kept in a folder, and used again while the corpus is the same."""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.faiss_library import faiss_library, prints_on_stderr
from s2l.collectors.ann.gpu import on_gpu
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.collectors.ann.indexes.ivf import LISTS_FILE, forget_pages
from s2l.collectors.ann.indexes.registry import index_kind
from s2l.collectors.ann.stage import Stage
from s2l.collectors.ann.vectors import Matrix
from s2l.workloads.document import Document
from s2l.workloads.errors import one_line

INDEX_FORMAT: Final = "s2l-ann-index/1"
CARD: Final = "index.json"
INDEX_FILE: Final = "index.faiss"
_AGAIN: Final = "build it again with --rebuild, or name another --index"


class IndexCard(msgspec.Struct, frozen=True, kw_only=True):
    """``index.json``: what the index is of and how it was built; ``files`` with their bytes."""

    format: str = INDEX_FORMAT
    content_sha256: str
    dimension: int
    count: int
    settings: dict[str, Any]
    faiss: str
    files: dict[str, int]


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """A faiss index, its kind, and the vectors it was built of, row by row."""

    kind: str
    index: Any
    vectors: Matrix

    def stages(self, settings: SearchSettings, width: int) -> Sequence[Stage]:
        """The stages that find the best ``width``."""
        return index_kind(self.kind).stages(self.index, self.vectors, settings, width)


def content_hash(passages: Sequence[Document], embedder: str) -> str:
    """Of the passages' ids and texts, in order, and the model's name."""
    digest = sha256(embedder.encode())
    for passage in passages:
        digest.update(f"\n{passage.doc_id}\n{passage.text_sha256}".encode())
    return digest.hexdigest()


def build_index(vectors: Matrix, settings: IndexSettings, folder: Path, content: str) -> None:
    """Build an index of unit vectors into a folder, in place of one that is there.

    Raises:
        AnnError: the settings do not fit the corpus, or the folder cannot be written.
    """
    part = folder.with_name(f"{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _write(vectors, settings, part, content)
        if folder.exists():
            _check_replaceable(folder)
            shutil.rmtree(folder)
        part.rename(folder)
    except OSError as error:
        raise AnnError(f"{folder}: {error.strerror}; name another --index") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write(vectors: Matrix, settings: IndexSettings, folder: Path, content: str) -> None:
    faiss = faiss_library()
    with prints_on_stderr():
        index = index_kind(settings.kind).build(vectors, settings, folder)
        faiss.write_index(index, str(folder / INDEX_FILE))
    card = IndexCard(
        content_sha256=content,
        dimension=vectors.shape[1],
        count=len(vectors),
        settings=asdict(settings),
        faiss=faiss.__version__,
        files={file.name: file.stat().st_size for file in sorted(folder.iterdir())},
    )
    (folder / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")


def _check_replaceable(folder: Path) -> None:
    if any(folder.iterdir()) and not (folder / CARD).is_file():
        raise AnnError(f"{folder}: holds something else than an index; name another --index")


def holds_index(folder: Path) -> bool:
    """Whether there is anything in it: if it is no sound index, opening it says so."""
    return folder.is_dir() and any(folder.iterdir())


def open_index(
    vectors: Matrix, settings: IndexSettings, folder: Path, content: str, *, gpu: bool = False
) -> VectorIndex:
    """The index in a folder, checked to be one of these vectors, by these settings.

    Lists on disk are out of memory when this returns, so that the first probe of each is a read.

    Raises:
        AnnError: there is none, it is damaged or cut short, of another dimension, of another
            corpus or built in another way; or there is no GPU.
    """
    card = read_card(folder)
    _check_card(card, folder, vectors, settings, content)
    for name, size in card.files.items():
        _check_file(folder / name, size)
    if LISTS_FILE in card.files:
        forget_pages(folder / LISTS_FILE)
    index = _read(folder / INDEX_FILE)
    if (index.d, index.ntotal) != (card.dimension, card.count):
        text = f"holds {index.ntotal} vectors of {index.d} dimensions, not {card.count} of "
        raise AnnError(f"{folder / INDEX_FILE}: {text}{card.dimension}; {_AGAIN}")
    return VectorIndex(settings.kind, on_gpu(index) if gpu else index, vectors)


def read_card(folder: Path) -> IndexCard:
    """What is said of the index in a folder.

    Raises:
        AnnError: there is none, or it is damaged or of another format.
    """
    try:
        card = msgspec.json.decode((folder / CARD).read_bytes(), type=IndexCard)
    except OSError as error:
        raise AnnError(f"{folder / CARD}: {error.strerror}; {_AGAIN}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AnnError(f"{folder / CARD}: damaged: {error}; {_AGAIN}") from None
    if card.format != INDEX_FORMAT:
        raise AnnError(f"{folder / CARD}: format {card.format}, not {INDEX_FORMAT}; {_AGAIN}")
    return card


def _check_card(
    card: IndexCard, folder: Path, vectors: Matrix, settings: IndexSettings, content: str
) -> None:
    if card.dimension != vectors.shape[1]:
        text = f"has {card.dimension} dimensions, and the model's vectors {vectors.shape[1]}"
        raise AnnError(f"{folder}: {text}; {_AGAIN}")
    if card.content_sha256 != content:
        raise AnnError(
            f"{folder}: the corpus or the model is another than it was built of; {_AGAIN}"
        )
    for name, value in asdict(settings).items():
        if card.settings.get(name) != value:
            text = f"was built with {name} {card.settings.get(name)}, not {value}"
            raise AnnError(f"{folder}: {text}; {_AGAIN}")


def _check_file(file: Path, size: int) -> None:
    if not file.is_file():
        raise AnnError(f"{file}: missing, though {CARD} lists it; {_AGAIN}")
    if (found := file.stat().st_size) != size:
        raise AnnError(f"{file}: has {found} bytes, not {size}: cut short or changed; {_AGAIN}")


def _read(file: Path) -> Any:
    faiss = faiss_library()
    try:
        with prints_on_stderr():
            return faiss.read_index(str(file), faiss.IO_FLAG_ONDISK_SAME_DIR)
    except RuntimeError as error:
        text = one_line(error)[:200]
        raise AnnError(f"{file}: not a faiss index: {text}; {_AGAIN}") from None
