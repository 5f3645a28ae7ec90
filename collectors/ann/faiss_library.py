"""The one module that imports faiss."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from s2l.collectors.ann.errors import AnnError, missing


def faiss_library() -> Any:
    """The package.

    Raises:
        AnnError: it is not installed.
    """
    try:
        import faiss
    except ImportError:
        raise missing("faiss-cpu") from None
    return faiss


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """Standard output is for results; faiss prints notes there, from C, about lists on disk.

    For all of the process, so not while anything else runs.
    """
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(output, 1)
        os.close(output)


def one_core() -> None:
    """Let calls of this thread use one core each: as many searches as cores run at once."""
    faiss_library().omp_set_num_threads(1)


def on_gpu(index: Any) -> Any:
    """The index, copied to the first GPU.

    Raises:
        AnnError: this faiss sees no GPU.
    """
    faiss = faiss_library()
    if not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() == 0:
        raise AnnError(
            "faiss sees no GPU; install faiss-gpu-cu12 on a machine with one, or leave out --gpu"
        )
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
