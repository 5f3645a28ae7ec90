"""How the bytes of a page become letters."""

import codecs
import re
from dataclasses import dataclass
from typing import Any, Final

from charset_normalizer import from_bytes

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META: Final = re.compile(
    rb"""<(?:meta[^>]{0,200}?charset|\?xml[^>]{0,100}?encoding)\s*=\s*["']?\s*([\w:.-]{1,40})""",
    re.I,
)
_META_WITHIN: Final = 4096
_DETECT_WITHIN: Final = 65_536
# The encodings that browsers know (WHATWG Encoding), as Python names them.
_ON_THE_WEB: Final = (
    *("utf_8", "utf_16_le", "utf_16_be", "cp1252", "cp1250", "cp1251", "cp1253", "cp1254"),
    *("cp1255", "cp1256", "cp1257", "cp1258", "iso8859_2", "iso8859_3", "iso8859_4", "iso8859_5"),
    *("iso8859_6", "iso8859_7", "iso8859_8", "iso8859_10", "iso8859_13", "iso8859_14"),
    *("iso8859_15", "iso8859_16", "koi8_r", "koi8_u", "mac_roman", "mac_cyrillic", "cp866"),
    *("cp874", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "shift_jis", "cp932", "euc_kr"),
    "cp949",
)
# Names that mean more than their standards say, as browsers take them (WHATWG Encoding).
_WIDER: Final = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """``source`` of the encoding: ``bom``, ``header``, ``meta``, ``detected`` or ``default``.

    ``wrong_label`` is a label of the page that does not fit its bytes or names no encoding;
    ``undecodable`` how many characters stand for bytes that are none (U+FFFD).
    """

    text: str
    charset: str
    source: str
    wrong_label: str | None = None
    undecodable: int = 0

    def meta(self) -> dict[str, Any]:
        """What an arrival's ``meta`` says of it."""
        found: dict[str, Any] = {"charset": self.charset, "charset_from": self.source}
        if self.wrong_label is not None:
            found["charset_wrong"] = self.wrong_label
        if self.undecodable:
            found["undecodable"] = self.undecodable
        return found


def decode(body: bytes, header: str | None, *, html: bool = False) -> Decoded:
    """Letters by byte order mark, header, ``<meta>`` (for HTML) or the bytes, in this order.

    Bytes that are valid UTF-8 beyond ASCII are UTF-8 whatever a label says: by chance they would
    hardly be. A label that fits only partly is kept, and its misfits become U+FFFD.
    """
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return _replaced(body[len(bom) :], encoding, "bom", None)
    labels = [("header", header), ("meta", _meta_label(body) if html else None)]
    wrong = None
    for source, label in labels:
        if label is None:
            continue
        name = _codec(label)
        if name is not None and (fitting := _fitting(body, name)) is not None:
            return Decoded(fitting, name, source, wrong)
        wrong = wrong or label
    if (text := _fitting(body, "utf-8")) is not None:
        return Decoded(
            text, "utf-8", "detected" if wrong or not body.isascii() else "default", wrong
        )
    return _best(body, labels, wrong)


def _best(body: bytes, labels: list[tuple[str, str | None]], wrong: str | None) -> Decoded:
    """Where nothing fits wholly: a label with few misfits, else what the bytes look like."""
    for source, label in labels:
        name = _codec(label) if label else None
        if name is not None and not name.startswith("utf-16"):
            found = _replaced(body, name, source, wrong)
            if found.undecodable * 100 <= len(body) and not _is_utf8(body, name):
                return found
    return _replaced(body, _looks_like(body), "detected", wrong)


def _looks_like(body: bytes) -> str:
    """The encoding that the start of the bytes looks like; the commonest of those that agree."""
    guess = from_bytes(body[:_DETECT_WITHIN], cp_isolation=list(_ON_THE_WEB)).best()
    if guess is None:
        return "utf-8"
    if "cp1252" in guess.could_be_from_charset:
        return "cp1252"
    return _codec(guess.encoding) or "utf-8"


def _fitting(body: bytes, name: str) -> str | None:
    """The text, if all bytes are letters of that encoding."""
    if _is_utf8(body, name):
        return None
    try:
        return body.decode(name)
    except UnicodeError:
        return None


def _is_utf8(body: bytes, name: str) -> bool:
    """Whether bytes labelled as something else are UTF-8 beyond ASCII."""
    if name == "utf-8" or name.startswith("utf-16") or body.isascii():
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replaced(body: bytes, name: str, source: str, wrong: str | None) -> Decoded:
    text = body.decode(name, errors="replace")
    misfits = text.count("\ufffd") - (body.count(b"\xef\xbf\xbd") if name == "utf-8" else 0)
    return Decoded(text, name, source, wrong, max(0, misfits))


def _meta_label(body: bytes) -> str | None:
    found = _META.search(body[:_META_WITHIN])
    if found is None:
        return None
    label = found[1].decode("ascii", errors="replace")
    # A page that can be read as far as this is not UTF-16, as browsers know.
    return "utf-8" if label.lower().startswith("utf-16") else label


def _codec(label: str) -> str | None:
    """Python's name of an encoding of text; None where there is none."""
    try:
        info = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    if not info._is_text_encoding:
        return None
    if info.name.startswith("utf-7") or info.name in ("idna", "punycode", "raw-unicode-escape"):
        return None
    return _WIDER.get(info.name, info.name)
