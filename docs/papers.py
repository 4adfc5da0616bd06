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
from uq_tracking_papers.page import VERDICTS, Chapter, Entry, Shown, chapter, counts
from uq_tracking_papers.run import read
from uq_tracking_papers.study import DEPENDS, HOLDS, UNJUDGED

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

`all` means `merci n-merci gustafsson xiong levi`; `--quick` uses smaller samples and fewer seeds. On two cores all five take
less than forty minutes, and less than four with `--quick`.

The output is a folder with `index.html`, the numbers as `reproduction.json`, and every run, logged by `uq.log`. This page
was made from one. Each experiment is repeated with 20 seeds (10 where training takes longer): training data, networks and
test data are drawn anew. A claim of a paper

- **holds** if it came out true with 17 of 20 seeds or more (85 %), under every variant of the experiment;
- **depends** on a choice that the paper does not state, if it did so under some variants only;
- **does not hold** if it did so under none;
- **varies** if the two halves of the seeds disagree about that;
- **cannot be judged here** if its data or models are out of reach.

Only the papers' own claims are judged; checks of our own stand apart. Brackets give the 5 % and 95 % quantiles over seeds,
sentences the median and, in parentheses, the range. Numbers in italics are the paper's.

The data: the papers' toys, for Gustafsson with the authors' own points and HMC ([MIT
license](https://github.com/fregu856/evaluating_bdl), kept beside the copy); the Middlebury motorcycle that ships with
scikit-image, as depth completion from 5 % of the pixels, where the papers have NYU Depth v2 and KITTI; scikit-learn's
digits, rotated, where they have Cityscapes.

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
    yield "### Claims\n"
    yield "| claim | here | seeds | evidence |\n|---|---|---|---|"
    for finding in found.section.findings:
        verdict = VERDICTS[finding.verdict]
        shown = verdict if finding.verdict in (HOLDS, UNJUDGED) else f"**{verdict}**"
        evidence = f"Depends on {finding.choice}. " if finding.verdict == DEPENDS else ""
        seeds = "; ".join(counts(finding))
        yield f"| {escaped(finding.claim)} | {shown} | {escaped(seeds)} | {escaped(evidence + finding.evidence)} |"
    yield ""
    yield "### Every table and figure\n"
    yield "| item | title | status | note |\n|---|---|---|---|"
    for one in found.section.items:
        yield f"| {one.name.capitalize()} | {escaped(one.title)} | {one.status} | {escaped(one.note)} |"
    yield ""
    for shown_item in found.shown:
        yield from item(folder, shown_item)
    if found.section.diagnostics:
        yield "### Checks of our own\n"
        yield "| statement | here | evidence |\n|---|---|---|"
        for check in found.section.diagnostics:
            yield f"| {escaped(check.statement)} | {'yes' if check.holds else 'no'} | {escaped(check.evidence)} |"
        yield ""


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


def cell(entry: Entry | None) -> str:
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
        plain.quantize(256, dither=Image.Dither.NONE).save(PICTURES / path.name, optimize=True)
    return path.name


if __name__ == "__main__":
    (DOCS / "papers.md").write_text(papers(Path(sys.argv[1])), encoding="utf-8")
