"""Pictures of the page on classification: why top label and event differ, and every class of a segmentation."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import image
from matplotlib.figure import Figure

import uq_tracking as uq
from uq_tracking.plugins import figures

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "classes"
GALLERY = DOCS.parent / "examples" / "gallery"


def two_values() -> dict[str, uq.Report]:
    """Reports of an event stated at .2 or .8 that occurs in .4 or 1 of cases: of the event, and of the top label."""
    rng = np.random.default_rng(0)
    p = np.clip(rng.choice([0.2, 0.8], 20_000) + 0.04 * rng.normal(size=20_000), 0.01, 0.99)
    happened = (rng.random(20_000) < np.minimum(p + 0.2, 1)).astype(int)
    sure = np.maximum(p, 1 - p)
    right = ((p > 0.5) == happened).astype(int)
    return {"the event": uq.evaluate(happened, probs=p), "its top label": uq.evaluate(right, probs=sure)}


def organs() -> uq.Report:
    """Report of the segmentation that states one organ too often."""
    sys.path.insert(0, str(GALLERY))
    from organs import NAMES, methods, patients

    labels, probs = patients()
    stated = methods(probs)["too sure of the tumour"]
    return uq.evaluate(labels, probs=stated, groups=np.arange(12), classes=NAMES)


def draw() -> None:
    """Draw both pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    known = figures("classification")
    known["by_class"].draw(organs()).savefig(PICTURES / "by-class.png", dpi=90)
    sheet = Figure(figsize=(11, 5.2), dpi=90, layout="compressed")
    for ax, (name, report) in zip(sheet.subplots(1, 2).flat, two_values().items(), strict=True):
        single = PICTURES / "single.png"
        known["reliability"].draw(report).savefig(single)
        ax.imshow(image.imread(single))
        ax.set_title(f"{name}: ECE {report.scores['ece']:.3f}", fontsize=16)
        ax.axis("off")
        single.unlink()
    sheet.savefig(PICTURES / "event-and-top-label.png")


if __name__ == "__main__":
    draw()
