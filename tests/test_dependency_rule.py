"""The dependency table of docs/architecture.md, enforced on every import of the code."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "workloads": set(),
    "collectors": {"workloads"},
    "serving_adapter": {"workloads"},
    "replayer": {"workloads", "serving_adapter"},
    "reports": {"workloads", "replayer.run"},
    "s2l": {"workloads", "collectors", "serving_adapter", "replayer", "reports"},
}

HEAVY = {"faiss", "playwright", "sentence_transformers", "vllm", "ray", "huggingface_hub"}
"""Behind an extra each, and imported in one place each."""


def _modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def _allowed(module: str, folder: str) -> bool:
    """Whether ``folder`` may import ``s2l.<module>``."""
    permitted = MAY_IMPORT[folder] | {folder}
    return any(module == name or module.startswith(f"{name}.") for name in permitted)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_import_only_what_they_may(folder: str) -> None:
    files = _modules(folder)
    assert files
    for path in files:
        for name in _imports(path):
            if name == "s2l" or not name.startswith("s2l."):
                assert name != "s2l" or folder == "s2l", f"{path} imports the program"
                continue
            module = name.removeprefix("s2l.")
            first = module.partition(".")[0]
            if first not in MAY_IMPORT:  # a module of the program itself
                assert folder == "s2l", f"{path} imports the program ({name})"
            else:
                assert _allowed(module, folder), f"{path} must not import {name}"


def test_heavy_packages_are_imported_in_one_place_each() -> None:
    places: dict[str, set[str]] = {}
    for folder in MAY_IMPORT:
        for path in _modules(folder):
            for name in _imports(path):
                if (package := name.partition(".")[0]) in HEAVY:
                    places.setdefault(package, set()).add(str(path.relative_to(ROOT)))
    assert {package: files for package, files in places.items() if len(files) > 1} == {}


def test_datasets_cannot_be_imported() -> None:
    assert not list((ROOT / "datasets").rglob("*.py"))


def test_every_package_is_installed() -> None:
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join(("s2l", *path.parent.relative_to(ROOT).parts)).replace("s2l.s2l", "s2l")
        for folder in MAY_IMPORT
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert set(configured["packages"]) == found | {"s2l.datasets"}
