"""The pictures of the guides by task, the home page and README.md: what the code of each page itself draws."""

from __future__ import annotations

import os
import re
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "tasks"
HOME = """
import numpy as np
import uq_tracking as uq

rng = np.random.default_rng(0)
y_std = rng.gamma(4, 0.5, (60, 80))
y_pred = rng.normal(10, 3, (60, 80))
y_true = y_pred + 1.5 * y_std * rng.normal(size=(60, 80))
"""
"""The arrays of README.md, which the reader of the home page has."""


def run(page: str, before: str = "") -> dict[str, Any]:
    """Run the first Python of a page, and return its names."""
    (code, *_) = re.findall(
        r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(before + code, f"{page}.md", "exec"), names)
    return names


def draw() -> None:
    """Draw every picture, in a folder that is removed afterwards."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    back = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for page in ("tabular", "time-series", "posteriors"):
                run(page)["figure"].savefig(PICTURES / f"{page}.png", dpi=90)
            run("index", HOME)["figure"].savefig(PICTURES / "home.png", dpi=80)
            for name in ("reliability", "sparsification"):
                (drawn,) = Path("uq_runs").glob(f"*-run/uq_{name}.png")
                copyfile(drawn, PICTURES / f"{name}.png")
            run("dense")
            (drawn,) = Path("uq_runs").glob("*-network/uq_map_0.png")
            copyfile(drawn, PICTURES / "dense.png")
        finally:
            os.chdir(back)


if __name__ == "__main__":
    draw()
