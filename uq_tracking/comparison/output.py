"""What the command line does with a comparison: one format, to a file or to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from uq_tracking.comparison.collect import PAGE_FILE
from uq_tracking.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from uq_tracking.comparison.result import Comparison, Shown

MAKERS: Mapping[str, Callable[[Comparison, Shown], str]] = {
    "text": lambda comparison, shown: comparison.to_text(shown) + "\n",
    "markdown": lambda comparison, shown: comparison.to_markdown(shown),
    "csv": lambda comparison, shown: comparison.to_csv(shown or "all"),
    "latex": lambda comparison, shown: comparison.to_latex(shown),
    "json": lambda comparison, shown: comparison.to_json() + "\n",
    "html": lambda comparison, shown: comparison.to_html(),
}


def check_format(name: str) -> str:
    """Check the name of a format; SettingsError for another."""
    if name not in MAKERS:
        raise SettingsError(f"--format is {name!r}; choose {', '.join(MAKERS)}")
    return name


def write(comparison: Comparison, form: str, output: Path | None, metrics: str, console: Console) -> None:
    """Write the comparison to a file, or to the terminal where none is named; a page always goes to a file."""
    shown: Shown = "all" if metrics == "all" else None
    if output is None and form == "text":
        console.print(comparison.to_rich(shown))
        return
    text = MAKERS[form](comparison, shown)
    if output is None and form == "html":
        output = Path(PAGE_FILE)
    if output is None:
        console.out(text, end="", highlight=False)
        return
    output.write_text(text, encoding="utf-8")
    console.print(f"written to {output}", markup=False, highlight=False, soft_wrap=True)


def chosen(metrics: str) -> list[str] | None:
    """Keys in a text with commas; None for none and for ``all``, which is a matter of what is shown."""
    return None if metrics == "all" else [key.strip() for key in metrics.split(",") if key.strip()] or None
