"""Write the generated pages: the catalogue, lessons, scenarios, agreement with other libraries, and conventions.

python docs/generate.py            # all
python docs/generate.py catalogue  # the catalogue alone, which needs no other library
python docs/generate.py concepts   # pictures of the concept pages
python docs/generate.py lessons    # scores and pictures of the pages on choosing and reading
python docs/generate.py tasks      # pictures of the home page and of the guides by task
python docs/generate.py classes    # the pictures of the page on classification
python docs/screenshots.py FOLDER  # MLflow's pages and the comparison page, of `uq-tracking demo -o FOLDER`
python docs/generate.py scenarios  # what the verdict says of known truths, in some minutes
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))


def main(pages: list[str]) -> None:
    """Write the pages named, or all."""
    from catalogue import catalogue
    from conventions import conventions

    written = {"catalogue": ("metrics.md", catalogue), "conventions": ("conventions.md", conventions)}
    if not pages or "agreement" in pages:
        from agreement import agreement

        written["agreement"] = ("conventions.md", agreement)
    if not pages or "lessons" in pages:
        import lessons

        made = lessons.reports()
        lessons.draw(made)
        written["lessons"] = ("choose-a-metric.md", lambda: lessons.choose_a_metric(made))
    if not pages or "concepts" in pages:
        import concepts

        concepts.draw()
    if not pages or "tasks" in pages:
        import tasks

        tasks.draw()
    if not pages or "classes" in pages:
        import classes

        classes.draw()
    if not pages or "scenarios" in pages:
        from scenarios import scenarios

        written["scenarios"] = ("scenarios.md", scenarios)
    for name in written.keys() & pages if pages else list(written):
        file, make = written[name]
        (DOCS / file).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
