"""Write the generated pages: the metric catalogue and the agreement with other libraries.

python docs/generate.py            # both pages
python docs/generate.py catalogue  # the catalogue alone, which needs no other library
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))


def main(pages: list[str]) -> None:
    """Write the pages named, or all."""
    from catalogue import catalogue

    written = {"catalogue": ("metrics.md", catalogue)}
    if not pages or "agreement" in pages:
        from agreement import agreement

        written["agreement"] = ("agreement.md", agreement)
    for name in pages or list(written):
        file, make = written[name]
        (DOCS / file).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
