"""An index on a GPU: what faiss can have there, and putting it there."""

from typing import Any, Final

from s2l.collectors.ann.errors import AnnError
from s2l.collectors.ann.faiss_library import faiss_library
from s2l.collectors.ann.index_settings import IndexSettings, SearchSettings
from s2l.workloads.errors import one_line

GPU_KINDS: Final = ("ivf-flat", "ivf-pq")
MOST: Final = 2048
"""Neighbours that one search on a GPU can find; lists are neighbours of the question, too."""
CODE_BYTES: Final = (1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48)
"""Of a quantized vector. Its table of distances has to fit into a GPU's shared memory."""


def check_gpu() -> None:
    """Raises AnnError where this faiss sees no GPU."""
    faiss = faiss_library()
    if not hasattr(faiss, "StandardGpuResources"):
        raise AnnError(
            "this faiss has no GPU support; install faiss-gpu-cu12 in place of faiss-cpu, or leave "
            "out --gpu"
        )
    if faiss.get_num_gpus() == 0:
        raise AnnError("faiss sees no GPU here; check the driver (nvidia-smi), or leave out --gpu")


def check_fits_gpu(kind: str, search: SearchSettings, width: int) -> None:
    """Raises AnnError for what a GPU has no version of, or finds too many with."""
    if kind not in GPU_KINDS:
        raise AnnError(f"{kind} has no GPU version; use {' or '.join(GPU_KINDS)}")
    refined = search.k * search.refined if kind == "ivf-pq" else 0
    counts = {"lists probed": search.lists_probed, "documents": max(width, refined)}
    for what, n in counts.items():
        if n > MOST:
            raise AnnError(f"{n} {what}: on a GPU a search finds at most {MOST}; ask for fewer")


def check_codes_fit_gpu(settings: IndexSettings, dimension: int) -> None:
    """Raises AnnError for a size of codes that no GPU takes."""
    if settings.kind == "ivf-pq" and (size := settings.code_size(dimension)) not in CODE_BYTES:
        known = ", ".join(str(n) for n in CODE_BYTES if dimension % n == 0)
        raise AnnError(f"codes of {size} bytes: a GPU takes {known}; give --code-bytes")


def on_gpu(index: Any) -> Any:
    """The index, copied to the first GPU.

    Raises:
        AnnError: faiss sees none, or it has not enough memory.
    """
    check_gpu()
    faiss = faiss_library()
    options = faiss.GpuClonerOptions()
    options.use_cuvs = False  # cuVS cannot be told which lists to search
    try:
        return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index, options)
    except RuntimeError as error:
        text = one_line(error)[:200]
        raise AnnError(f"the index cannot be put on the GPU: {text}") from None
