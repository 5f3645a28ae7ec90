"""The text of a PDF."""

from io import BytesIO

from pypdf import PdfReader
from pypdf.errors import LimitReachedError

from s2l.collectors.extraction.extracted import Extracted


def pdf_text(body: bytes, charset: str | None) -> Extracted:
    """The text of all pages, in their order; a file that opens without a password.

    Raises:
        MemoryError: a part of it unpacks to more than a reader should take.
        PyPdfError: it cannot be read.
    """
    try:
        reader = PdfReader(BytesIO(body))
        pages = [page.extract_text().strip() for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "")
    except LimitReachedError as error:
        raise MemoryError(str(error)) from error
    return Extracted(title.strip(), "\n\n".join(page for page in pages if page))
