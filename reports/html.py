"""The report as one HTML file that opens from disk and needs nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import altair
import jinja2
import vl_convert
from markupsafe import Markup

from s2l.replayer.run import Run
from s2l.reports import palette
from s2l.reports.page import RunView, inert_json


def write_html(runs: Run | Sequence[Run], path: Path) -> None:
    """Write one page that holds the report of each run, in the order given.

    Raises:
        RunError: a run's table is missing or damaged.
        OSError: the file cannot be written.
    """
    chosen = [runs] if isinstance(runs, Run) else list(runs)
    path.write_text(render([RunView.of(run) for run in chosen]), encoding="utf-8", newline="\n")


def render(views: Sequence[RunView]) -> str:
    """The page's text."""
    style = palette.stylesheet() + _template_file("report.css")
    scripts = [_vega_bundle(), _template_file("report.js")]
    return _template().render(
        views=views,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(style, scripts),
    )


def _policy(style: str, scripts: Sequence[str]) -> str:
    """A Content-Security-Policy that lets exactly this style and these scripts run."""
    allowed = {
        "default-src": "'none'",
        "script-src": " ".join(map(_source_hash, scripts)),
        "style-src": _source_hash(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in allowed.items())


def _source_hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in the version that Altair writes for."""
    major, minor, _ = altair.SCHEMA_VERSION.removeprefix("v").split(".")
    bundle = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=f"{major}.{minor}"
    )
    # The only sequence that ends a script element; in JavaScript both spellings are one string.
    return bundle.replace("</script", r"<\/script")


def _template_file(name: str) -> str:
    return files("s2l.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template_file),
    )
    environment.filters["inert_json"] = lambda value: Markup(inert_json(value))
    return environment.get_template("report.html.j2")
