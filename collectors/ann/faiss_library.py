"""The one module that imports faiss."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from s2l.collectors.ann.errors import AnnError, missing
from s2l.workloads.errors import one_line


def faiss_library() -> Any:
    """The package.

    Raises:
        AnnError: it is not installed, or something that it needs is not.
    """
    if find_spec("faiss") is None:
        raise missing("faiss-cpu")
    try:
        import faiss
    except (ImportError, OSError) as error:  # the GPU's version looks for CUDA's libraries
        text = one_line(error)[:200]
        raise AnnError(f"faiss is installed and cannot be imported: {text}") from None
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
