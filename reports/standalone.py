"""Pages that open from disk and need nothing else: what all of them share."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import altair
import jinja2
import vl_convert
from markupsafe import Markup

from s2l.reports.inert import inert_json


def policy(style: str, scripts: Sequence[str]) -> str:
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
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in the version that Altair writes for."""
    major, minor, _ = altair.SCHEMA_VERSION.removeprefix("v").split(".")
    bundle = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=f"{major}.{minor}"
    )
    # The only sequence that ends a script element; in JavaScript both spellings are one string.
    return bundle.replace("</script", r"<\/script")


def template_file(name: str) -> str:
    """The text of a file beside the templates."""
    return files("s2l.reports").joinpath("templates", name).read_text(encoding="utf-8")


def template(name: str) -> jinja2.Template:
    """A template by its file's name, strict and escaping."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(template_file),
    )
    environment.filters["inert_json"] = lambda value: Markup(inert_json(value))
    return environment.get_template(name)
