"""What the site shows of the scripts of ``examples/gallery``: they run in a folder that is removed, and log there."""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sphinx_gallery.scrapers import figure_rst

os.environ["MLFLOW_LOGGING_LEVEL"] = "WARNING"
for chatter in ("lightning.pytorch.utilities.rank_zero", "lightning.pytorch.loggers.mlflow"):
    logging.getLogger(chatter).setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")
WORKPLACE = TemporaryDirectory()
"""Where the scripts of the gallery run, and leave their runs."""
SCRIPTS = shutil.copytree(
    Path(__file__).parents[1] / "examples" / "gallery", Path(WORKPLACE.name) / "gallery"
)
SHOWN = {
    "lightning_callback": "uq_reliability.png",
    "organs": "uq_by_class.png",
    "segmentation": "uq_reliability.png",
    "sklearn_gp": "uq_calibration.png",
    "terrain": "uq_map_0.png",
}
"""Which figure of its runs the page of a script shows; the others show none."""
OPTIONS = {"segmentation": ["--to", "dir:landforms"], "sklearn_gp": ["--to", "dir:estimators"]}


def logged_figures(block: Any, names: dict[str, Any], gallery: dict[str, Any]) -> str:
    """Show the figure that the runs of a script have logged, oldest run first."""
    script = Path(names["src_file"]).stem
    found = sorted(SCRIPTS.rglob(SHOWN.get(script, "none")), key=lambda path: path.stat().st_mtime)
    pictures = [next(names["image_path_iterator"]) for _ in found]
    for path, picture in zip(found, pictures, strict=True):
        shutil.move(path, picture)
    return figure_rst(pictures, gallery["src_dir"]) if pictures else ""


def options(gallery: dict[str, Any], names: dict[str, Any]) -> list[str]:
    """Remove the figures of other scripts, and return what is typed after the name of this one."""
    for figure in SCRIPTS.rglob("uq_*.png"):  # of the scripts before
        figure.unlink()
    return OPTIONS.get(Path(names["src_file"]).stem, [])
