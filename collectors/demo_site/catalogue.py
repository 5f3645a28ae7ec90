"""Which objects of the standard library have a page. Nothing else is ever imported or served."""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Final

_NAMES: Final = """
argparse array base64 bisect builtins bz2 calendar codecs collections colorsys
concurrent.futures configparser contextlib copy csv dataclasses datetime decimal difflib
enum fnmatch fractions functools getpass glob graphlib gzip hashlib heapq hmac html io
ipaddress itertools json logging lzma math mimetypes operator os os.path pathlib pickle
platform pprint queue random re sched secrets shelve shlex shutil socket sqlite3 statistics
string struct subprocess tarfile tempfile textwrap threading time timeit trace unicodedata
urllib.error urllib.parse urllib.request uuid warnings webbrowser xml.etree.ElementTree
zipfile zlib
"""
MODULES: Final = tuple(_NAMES.split())
"""Modules that every build of Python has and that do nothing but define things when imported."""


def page_names(module: str) -> Iterator[tuple[str, object]]:
    """The module's own page, then those of its public functions and classes: (name, object)."""
    found = importlib.import_module(module)
    yield module, found
    for name in _public(found):
        value = getattr(found, name)
        if (inspect.isroutine(value) or inspect.isclass(value)) and not _is_error(value):
            yield f"{module}.{name}", value


def _public(module: ModuleType) -> list[str]:
    """What the module says is public, or else the names that it defines itself."""
    if declared := getattr(module, "__all__", None):
        return sorted(name for name in set(declared) if hasattr(module, name))
    # A module's C half has its name with an underscore before it.
    owners = (module.__name__, f"_{module.__name__}")
    names = (name for name in dir(module) if not name.startswith("_"))
    return [name for name in names if _owner(getattr(module, name)) in owners]


def _owner(value: object) -> str | None:
    return getattr(value, "__module__", None) or getattr(inspect.getmodule(value), "__name__", None)


def _is_error(value: object) -> bool:
    """Exceptions are described on their module's page; pages of their own would say nothing."""
    return inspect.isclass(value) and issubclass(value, BaseException)
