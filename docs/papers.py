"""Write docs/papers.md from a finished reproduction: tables, findings and pictures.

uq-tracking reproduce all -o FOLDER
python docs/papers.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from uq_tracking.formatting import typographic
from uq_tracking_papers.page import Chapter, Shown, chapter
from uq_tracking_papers.run import read

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "papers"
WIDTH = 900
"""Pixels of a picture's width, at most."""

INTRODUCTION = """# The papers, reproduced

`uq-tracking reproduce` repeats the experiments of the papers behind this package's metrics and puts the results next to
the published ones:

```
pip install uq-tracking-papers
uq-tracking reproduce all
```

`all` means `merci n-merci gustafsson xiong levi`; `--quick` uses smaller samples and fewer repeats. On two cores, all five
took fifteen minutes, and three with `--quick`.

The output is a folder with `index.html`, the numbers as `reproduction.json`, and every run, logged by `uq.log`. This page
was made from one. Each "holds" is computed from the numbers of that run; "does not hold" means that the same experiment, at
the size given, came out differently. Brackets give the 5 % and 95 % quantiles over repeats. Numbers in italics are the
paper's.

Errors and gaps in the papers have [their own page](corrections.md).
"""


def papers(folder: Path) -> str:
    """The page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    parts = [INTRODUCTION]
    for section in read(folder):
        parts += paper(folder, chapter(section))
    return "\n".join(parts)


def paper(folder: Path, found: Chapter) -> Iterator[str]:
    """One paper."""
    about = found.section.about
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    yield f"## {found.paper.title}\n"
    yield (
        f"{found.paper.citation}. `uq-tracking reproduce {found.key}{' --quick' if about['size'] == 'quick' else ''}`, "
        f"run on {about['date']}, seed {about['seed']}; {versions}.\n"
    )
    yield "| claim | here | evidence |\n|---|---|---|"
    for finding in found.section.findings:
        holds = "holds" if finding.holds else "**does not hold**"
        yield f"| {escaped(finding.claim)} | {holds} | {escaped(finding.evidence)} |"
    yield ""
    for shown in found.shown:
        yield from item(folder, shown)


def item(folder: Path, shown: Shown) -> Iterator[str]:
    """A table or figure."""
    yield f"### {shown.item.name.capitalize()}: {shown.item.title}\n"
    for paragraph in shown.paragraphs:
        yield f"{escaped(paragraph)}\n"
    if shown.grid is not None:
        yield "| |" + "".join(f" {quantity} |" for quantity in shown.grid.quantities)
        yield "|---|" + "--:|" * len(shown.grid.quantities)
        for method in shown.grid.methods:
            entries = (shown.grid.entries[method][quantity] for quantity in shown.grid.quantities)
            yield f"| {escaped(method)} |" + "".join(f" {cell(entry)} |" for entry in entries)
        yield ""
    for drawing in shown.drawings:
        name = compressed(folder / drawing.file)
        caption = escaped(drawing.caption or shown.item.title)
        yield f"![{caption}](images/papers/{name})\n"
        if drawing.caption:
            yield f"{caption}\n"


def cell(entry: object) -> str:
    """Our number, its range, and the paper's."""
    if entry is None:
        return ""
    text = entry.cell.text if entry.cell.interval is None else f"{entry.cell.text} {entry.cell.interval_text}"
    text = f"**{text}**" if entry.cell.best else text
    return typographic(f"{text} *{entry.paper_text}*" if entry.paper_text else text)


def escaped(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([|*_<>\[\]`$])", r"\\\1", text)


def compressed(path: Path) -> str:
    """A smaller copy of a picture beside the page; returns its name."""
    with Image.open(path) as picture:
        plain = picture.convert("RGB")
        if plain.width > WIDTH:
            plain = plain.resize((WIDTH, round(plain.height * WIDTH / plain.width)), Image.Resampling.LANCZOS)
        plain.save(PICTURES / path.name, optimize=True)
    return path.name


if __name__ == "__main__":
    (DOCS / "papers.md").write_text(papers(Path(sys.argv[1])), encoding="utf-8")
