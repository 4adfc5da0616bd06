"""Parts of pages in docs/ that measurements write: each stands between two comments that name it."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def part_of(page: str, name: str) -> str:
    """The text between the comments of this name in a page; ValueError when the page lacks them."""
    return _around(page, name)[1]


def replace_part(page: str, name: str, text: str) -> None:
    """Put a text between the comments of this name in a page; ValueError when the page lacks them."""
    before, _, after = _around(page, name)
    (DOCS / page).write_text(f"{before}{text.strip(chr(10))}\n{after}", encoding="utf-8")


def _around(page: str, name: str) -> tuple[str, str, str]:
    """What stands before, between and after the comments, which belong to the first and the last."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = (DOCS / page).read_text(encoding="utf-8").partition(begin)
    text, mark, after = rest.partition(end)
    if not (found and mark):
        raise ValueError(f"{DOCS / page} has no part called {name}")
    return before + begin, text, end + after
