"""Parts of pages in docs/ that measurements write: each stands between two comments that name it."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def replace_part(page: str, name: str, text: str) -> None:
    """Put a text between the comments of this name in a page; ValueError when the page lacks them."""
    path = DOCS / page
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, mark, after = rest.partition(end)
    if not (found and mark):
        raise ValueError(f"{path} has no part called {name}")
    path.write_text(before + begin + text.strip("\n") + "\n" + end + after, encoding="utf-8")
