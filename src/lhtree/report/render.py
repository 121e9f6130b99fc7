"""From data to one self-contained page."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from importlib import resources
from typing import Any

try:
    import jinja2
    from markupsafe import Markup
except ImportError as error:
    message = "lhtree.report needs Jinja2: pip install 'lhtree[report]'."
    raise ImportError(message, name="jinja2") from error

SCRIPTS = (
    "dom.js",
    "charts.js",
    "voting.js",
    "boosted.js",
    "shares.js",
    "tree.js",
    "why.js",
    "main.js",
)


def render(context: dict[str, Any], data: dict[str, Any]) -> str:
    """Return the page: the template with its data, style and scripts filled in."""
    style = _read("style.css")
    script = "\n".join(['"use strict";', "(() => {", *map(_read, SCRIPTS), "})();", ""])
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
        "ensure_ascii": False,
    }
    environment.filters["soft"] = _soften
    environment.filters["percent"] = _format_percent
    environment.filters["decimal"] = _format_decimal
    environment.filters["short"] = _format_short
    page = environment.get_template("report.html").render(
        **context,
        data=data,
        # Our own files, the only text on the page that is not escaped.
        style=Markup(style),
        script=Markup(script),
        style_digest=_digest(style),
        script_digest=_digest(script),
    )
    return str(page)


def _read(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files("lhtree.report").joinpath("page", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest by which a Content-Security-Policy allows a text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _soften(name: str) -> Markup:
    """Return an escaped name that may break after its separators."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/:])", name))


def _format_percent(value: float) -> str:
    if 0.9995 <= value < 1:  # 100 % is for all rows only
        return ">99.9 %"
    return "none" if math.isnan(value) else f"{100 * value:.1f} %"


def _format_decimal(value: float, n_digits: int = 3) -> str:
    return "none" if math.isnan(value) else f"{value:.{n_digits}f}"


def _format_short(value: float) -> str:
    """Return a number with about four digits."""
    if not math.isfinite(value):
        return "none"
    size = abs(value)
    text = f"{value:,.0f}" if 1e4 <= size < 1e7 else f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}")
