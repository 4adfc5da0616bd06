"""Tables as HTML for notebooks: no script, and nothing that touches the notebook's own style."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from uq_tracking.formatting import one_line, typographic
from uq_tracking.tables.colors import rank_color
from uq_tracking.tables.model import Table


@lru_cache(maxsize=4)
def templates(package: str) -> Environment:
    """The templates of a package; every value is escaped, whatever its file is called."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(one_line=one_line, rank_color=rank_color, typographic=typographic)
    return environment


def tables_html(tables: Sequence[Table]) -> str:
    """The tables below one another, with colours by rank, warnings above and notes below."""
    return templates("uq_tracking.tables").get_template("tables.html").render(tables=tables)
