"""Write docs/papers.md from a finished reproduction: claims, items, tables and pictures.

uq-tracking reproduce all -o FOLDER
python docs/papers.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from uq_tracking.formatting import typographic
from uq_tracking_papers.page import PAPERS, VERDICTS, Entry, counts, grid
from uq_tracking_papers.run import read
from uq_tracking_papers.study import ABSENT, DEPENDS, FAILS, HOLDS, UNJUDGED, VARIES, Finding, Item, Section

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "papers"
WIDTH = 900
"""Pixels of a picture's width, at most."""

INTRODUCTION = """# The papers, reproduced

`uq-tracking reproduce all` (of the distribution `uq-tracking-papers`; less than forty minutes on two cores, with `--quick`
less than four) repeats the experiments of the five papers behind this package's metrics. It writes `index.html` with every
number and the evidence of every claim, `reproduction.json`, and the runs; this page is made from them. Tables hold medians
over seeds, the best in bold, the paper's numbers in italics. Errors in the papers have [their own page](corrections.md).

The papers' toys are drawn anew, for Gustafsson with the authors' own points and HMC ([MIT
license](https://github.com/fregu856/evaluating_bdl), kept beside the copy). The Middlebury motorcycle of scikit-image, as
depth completion from 5 % of the pixels, stands for NYU Depth v2 and KITTI, rotated digits of scikit-learn for Cityscapes.
"""

SHORT = {
    "test x in [-4, 4]": "within 4",
    "test x in [-6, 6]": "within 6",
    "from training pixels": "seen",
    "from pixels held out": "held out",
    "rotated by 10 degrees": "10°",
    "rotated by 20 degrees": "20°",
    ", which the papers do not state": "",
    ", which the paper does not state": "",
}
CLAIMS = """## Every claim

Each is tried with 20 seeds (10 where training takes longer), which draw training data, networks and test data anew. It
**holds** if true in 85 % of them under every variant of the experiment, **depends** on a choice that the paper leaves open
if under some, and **does not hold** if under none; it **varies** if two halves of the seeds disagree about that. Counts are
those of the variants: test inputs within 4 or 6 of 0; Learned Error learning from pixels seen or held out; motorcycle or
terrain; digits rotated by 10 or 20 degrees. Parentheses hold the range over seeds.
"""


SEEN = "seen"
COLUMNS = {
    HOLDS: ("claim", "seeds"),
    DEPENDS: ("claim", "seeds", "choice"),
    FAILS: ("claim", "seeds", SEEN),
    UNJUDGED: ("claim", "why"),
    VARIES: ("claim", "seeds", SEEN),
}
"""What the page tells of the claims of a class."""
FEW = 7
"""Most quantities of a table that stand side by side; of more, each has a row."""


def papers(folder: Path) -> str:
    """The page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    sections = read(folder)
    parts = [INTRODUCTION, run_of(sections[0]), *claims(sections), *items(sections)]
    for section in sections:
        parts += paper(folder, section)
    return "\n".join(parts)


def run_of(section: Section) -> str:
    """When, and with what, the run was made."""
    about = section.about
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return f"Run on {about['date']}, size {about['size']}, seed {about['seed']}; {versions}.\n"


def claims(sections: list[Section]) -> Iterator[str]:
    """One table of all claims, by class, after a table of how many there are."""
    yield CLAIMS
    yield "| |" + "".join(f" {verdict} |" for verdict in VERDICTS.values())
    yield "|---|" + "--:|" * len(VERDICTS)
    for section in sections:
        found = Counter(finding.verdict for finding in section.findings)
        yield f"| {section.paper} |" + "".join(f" {found[verdict]} |" for verdict in VERDICTS)
    tried_here = [one.verdict for section in sections for one in section.findings if one.verdict != UNJUDGED]
    yield f"\nTwo halves of the seeds agree about {sum(one != VARIES for one in tried_here)} of {len(tried_here)} claims."
    for verdict, words in VERDICTS.items():
        columns = COLUMNS[verdict]
        yield f"\n### {words[0].upper() + words[1:]}\n"
        yield f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
        for section in sections:
            chosen = [finding for finding in section.findings if finding.verdict == verdict]
            if chosen:
                yield f"| **{section.paper}** |{' |' * (len(columns) - 1)}"
            for finding in chosen:
                cells = {"claim": escaped(finding.claim), "seeds": tried(finding)}
                yield f"| {' | '.join(cells.get(column) or escaped(why(finding)) for column in columns)} |"
    yield ""


def tried(finding: Finding) -> str:
    """In how many seeds a claim was true, by variant."""
    return ", ".join(count.partition(" of ")[0] for count in counts(finding)) + (
        f" of {finding.seeds}" if finding.seeds else ""
    )


def why(finding: Finding) -> str:
    """The choice that a claim depends on, or what was seen, with short names of the variants."""
    text = finding.choice if finding.verdict == DEPENDS else finding.evidence
    for name, short in SHORT.items():
        text = text.replace(name, short)
    return text


def items(sections: list[Section]) -> Iterator[str]:
    """One table of all tables and figures."""
    yield "## Every table and figure\n"
    yield "| item | what | status | note |\n|---|---|---|---|"
    for section in sections:
        yield f"| **{section.paper}** | | | |"
        for one in section.items:
            yield f"| {one.name[0].upper() + one.name[1:]} | {escaped(one.title)} | {one.status} | {escaped(one.note)} |"
    yield ""


def paper(folder: Path, section: Section) -> Iterator[str]:
    """One paper: what was done, its tables and figures, and checks of our own."""
    yield f"## {PAPERS[section.paper].title}\n"
    yield f"{PAPERS[section.paper].citation}.\n"
    for paragraph in section.about["set_up"]:
        yield f"{escaped(paragraph)}\n"
    for one in section.items:
        if one.status != ABSENT:
            yield from item(folder, section, one)
    if section.diagnostics:
        yield "### Checks of our own\n"
        for check in section.diagnostics:
            yield f"- {escaped(check.statement)}: **{'yes' if check.holds else 'no'}**. {escaped(check.evidence)}."
        yield ""


def item(folder: Path, section: Section, one: Item) -> Iterator[str]:
    """The numbers of a table, our medians beside the paper's in italics; or the pictures of a figure."""
    yield f"### {one.name[0].upper() + one.name[1:]}\n"
    table = grid(one, section.rows) if one.name.startswith("table") else None
    if table is not None:
        rows, columns = table.methods, table.quantities
        turned = len(columns) > FEW
        if turned:
            rows, columns = columns, rows
        yield "| |" + "".join(f" {escaped(column)} |" for column in columns)
        yield "|---|" + "--:|" * len(columns)
        for row in rows:
            pairs = ((column, row) if turned else (row, column) for column in columns)
            entries = (table.entries[method][quantity] for method, quantity in pairs)
            yield f"| {escaped(row)} |" + "".join(f" {cell(entry)} |" for entry in entries)
        yield ""
    for drawing in section.drawings:
        if drawing.item == one.name:
            caption = escaped(drawing.caption)
            yield f"![{one.name[0].upper() + one.name[1:]}](images/papers/{compressed(folder / drawing.file)})\n\n{caption}\n"


def cell(entry: Entry | None) -> str:
    """Our number, and the paper's."""
    if entry is None:
        return ""
    text = f"**{entry.cell.text}**" if entry.cell.best else entry.cell.text
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
        # A palette by how frequent colors are would leave out the ends of color maps.
        few = plain.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
        few.save(PICTURES / path.name, optimize=True)
    return path.name


if __name__ == "__main__":
    (DOCS / "papers.md").write_text(papers(Path(sys.argv[1])), encoding="utf-8")
