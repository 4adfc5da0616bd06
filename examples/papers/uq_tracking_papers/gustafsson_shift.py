"""Sections 4.2 and 4.3 of Gustafsson et al., on terrain: ensembling and MC-dropout under a shift of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import uq_tracking as uq
from uq_tracking.demo.terrain import load_terrain
from uq_tracking.inputs import Predictions
from uq_tracking_papers import landforms
from uq_tracking_papers.bundle import (
    Bundle,
    Training,
    class_loss,
    fit,
    gaussian_loss,
    moments,
    probabilities,
)
from uq_tracking_papers.members import Columns, against_members, at, tell
from uq_tracking_papers.study import Study

FloatArray = npt.NDArray[np.float64]

WEST, EAST = slice(0, 180), slice(230, 403)
SHARES = 0.05, 0.02
"""Share of measured cells where models are trained, and where they are tested."""
METHODS = ("Ensembling", "MC-dropout")
REGRESSION_KEYS = ("ause_rmse", "auce", "rmse")
CLASS_KEYS = ("ause_brier", "ece", "miou")

SHIFT = (
    "Models are trained in the west of the demo's terrain, where 5 % of the cells are measured, and tested in the "
    "east, where 2 % are: a shift in place and in density, where the paper steps from rendered to real images. "
)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one half: what models see of them, their heights above the interpolated ones, and their landforms."""

    features: FloatArray
    rest: FloatArray
    labels: npt.NDArray[np.int64]

    @classmethod
    def drawn(cls, part: slice, share: float, count: int, rng: np.random.Generator) -> Cells:
        """``count`` random cells that are neither measured nor at the border."""
        terrain = load_terrain(int(rng.integers(2**31)), share=share)
        heights = landforms.interpolated(terrain)
        labels = landforms.labels(terrain.elevation)
        usable = (labels != landforms.IGNORED) & ~terrain.measured
        inside = np.zeros_like(usable)
        inside[:, part] = usable[:, part]
        chosen = rng.choice(np.flatnonzero(inside), count, replace=False)
        seen = landforms.features(heights, terrain.measured).reshape(usable.size, -1)[chosen]
        rest = (terrain.elevation - heights).ravel()[chosen]
        return cls(seen, rest, labels.ravel()[chosen].astype(np.int64))


def reproduce(study: Study) -> None:
    """Figures 6 and 8."""
    training = Cells.drawn(WEST, SHARES[0], study.pick(4000, 3000, 1500), study.rng("west"))
    test = Cells.drawn(EAST, SHARES[1], study.pick(20_000, 8000, 3000), study.rng("east"))
    _figure_6(study, training, test)
    _figure_8(study, training, test)


def _networks(
    study: Study,
    name: str,
    method: str,
    train: Callable[..., Any],
    x: FloatArray,
    test: FloatArray,
    outputs: int,
) -> npt.NDArray[np.float32]:
    """Outputs (repeats, members, cells, outputs) of an ensemble, or of passes of several networks with dropout."""
    members, repeats = study.pick((32, 5), (16, 3), (8, 2))
    seed = int(study.rng(name, method).integers(2**31))
    watch = partial(study.progress, what=f"{method}, {name}")
    if method == "Ensembling":
        ensemble = train(Bundle(members, x.shape[1], (48, 48), outputs, seed=seed), watch)
        return np.asarray(ensemble.predict(test)[None])
    dropped = Bundle(repeats, x.shape[1], (96, 96), outputs, seed=seed, dropout=0.2, dropped=(0, 1))
    train(dropped, watch)
    return np.stack([dropped.predict(test, drop=True) for _ in range(members)], axis=1)


def _figure_6(study: Study, training: Cells, test: Cells) -> None:
    study.item(
        "figure 6",
        "AUSE, AUCE and RMSE against the number of samples, terrain",
        SHIFT
        + "A network predicts how far a cell lies above the heights interpolated around it, in metres, and the "
        "variance of that. MC-dropout switches off 20 % of twice as many units; the paper has 50 % of some layers.",
    )
    scale = float(training.rest.std())

    def train(bundle: Bundle, watch: Any) -> Bundle:
        effort = Training(study.pick(60, 40, 15), 64, 2e-3)
        return fit(bundle, training.features, training.rest / scale, gaussian_loss, effort, watch)

    def curves(method: str) -> dict[str, npt.ArrayLike]:
        outputs = _networks(study, "terrain", method, train, training.features, test.features, 2)
        given = [tuple(scale * part for part in moments(one)) for one in outputs]
        options: dict[str, Any] = {"curves": "by_members", "curve_metrics": REGRESSION_KEYS, "unit": "m"}
        ensembles = [Predictions.from_ensemble(test.rest, *one) for one in given]
        logged = study.log(
            ensembles[0],
            method=f"terrain, {method}",
            figures=study.size != "test",
            predictions=False,
            **options,
        )
        reports = [logged, *(uq.evaluate(one, **options) for one in ensembles[1:])]
        return against_members(reports, REGRESSION_KEYS)

    found = {method: study.cached(f"terrain-{method.lower()}", partial(curves, method)) for method in METHODS}
    most = int(found[METHODS[0]]["members"][-1])
    tell(study, "figure 6", found, REGRESSION_KEYS, (1, most))
    told = partial(_told, found, most)
    falls = {method: _falls(columns, "ause_rmse", most) for method, columns in found.items()}
    study.finding(
        "AUSE improves with the number of samples (terrain)", all(falls.values()), told("ause_rmse")
    )
    values = {method: at(columns, "ause_rmse", most) for method, columns in found.items()}
    study.finding(
        "Ensembling has the lower AUSE (terrain)",
        values["Ensembling"] < values["MC-dropout"],
        told("ause_rmse"),
    )
    study.finding(
        "AUCE improves with the number of samples for ensembling and worsens for MC-dropout (terrain)",
        _falls(found["Ensembling"], "auce", most) and not _falls(found["MC-dropout"], "auce", most),
        told("auce"),
    )


def _figure_8(study: Study, training: Cells, test: Cells) -> None:
    study.item(
        "figure 8",
        "AUSE, ECE and mIoU against the number of samples, segmentation of terrain",
        SHIFT + "A network tells valley, slope and ridge apart. Dropout as for figure 6.",
    )

    def train(bundle: Bundle, watch: Any) -> Bundle:
        effort = Training(study.pick(120, 80, 30), 64, 2e-3)
        return fit(bundle, training.features, training.labels, class_loss, effort, watch)

    def curves(method: str) -> dict[str, npt.ArrayLike]:
        outputs = _networks(study, "segmentation", method, train, training.features, test.features, 3)
        options: dict[str, Any] = {
            "members_axis": 0,
            "class_names": landforms.NAMES,
            "curves": "by_members",
            "curve_metrics": CLASS_KEYS,
        }
        logged = study.log(
            test.labels, probs=probabilities(outputs[0]), method=f"segmentation, {method}",
            figures=study.size != "test", predictions=False, **options,
        )  # fmt: skip
        others = [uq.evaluate(test.labels, probs=probabilities(one), **options) for one in outputs[1:]]
        return against_members([logged, *others], CLASS_KEYS)

    found = {
        method: study.cached(f"segmentation-{method.lower()}", partial(curves, method)) for method in METHODS
    }
    most = int(found[METHODS[0]]["members"][-1])
    tell(study, "figure 8", found, CLASS_KEYS, (1, most))
    told = partial(_told, found, most)
    better = {
        method: _falls(columns, "ause_brier", most)
        and _falls(columns, "ece", most)
        and not _falls(columns, "miou", most)
        for method, columns in found.items()
    }
    study.finding(
        "AUSE, ECE and mIoU all improve with the number of samples, for both methods (segmentation)",
        all(better.values()),
        "; ".join(f"{key}: {told(key)}" for key in CLASS_KEYS),
    )
    gain = {
        method: at(columns, "ause_brier", 1) - at(columns, "ause_brier", most)
        for method, columns in found.items()
    }
    study.finding(
        "Ensembling gains more AUSE from its samples than MC-dropout (segmentation)",
        gain["Ensembling"] > gain["MC-dropout"],
        told("ause_brier"),
    )


def _falls(columns: Columns, key: str, most: int) -> bool:
    return at(columns, key, most) < at(columns, key, 1)


def _told(found: Mapping[str, Columns], most: int, key: str) -> str:
    return ", ".join(
        f"{method} {at(columns, key, 1):.4g} at M = 1 and {at(columns, key, most):.4g} at M = {most}"
        for method, columns in found.items()
    )
