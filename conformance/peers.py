"""Run other libraries' functions over the golden data sets, and write down which reading each of them follows.

Run ``python conformance/peers.py`` in an environment that holds `PEERS` (the versions are written down). Each adapter only
brings arrays into the shape that the library asks for. The result, ``registry.json``, is what the page of conventions shows.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from uq_tracking.testing.conformance import Audit, audit  # noqa: E402

Array = Any


@dataclass(frozen=True)
class Cell:
    """One function of a library, and the score under whose name it goes."""

    library: str
    function: str
    score: str
    kind: str
    call: Callable[..., Any]
    note: str = ""


CELLS: list[Cell] = []


def cell(library: str, function: str, score: str, kind: str, note: str = "") -> Callable[..., Any]:
    """Enter an adapter."""

    def enter(call: Callable[..., Any]) -> Callable[..., Any]:
        CELLS.append(Cell(library, function, score, kind, call, note))
        return call

    return enter


def scikit_learn() -> None:
    """Enter scikit-learn's functions."""
    import sklearn.metrics as sk
    from sklearn.calibration import calibration_curve

    def of(function: str, score: str, kind: str, call: Callable[..., Any], note: str = "") -> None:
        cell("scikit-learn", function, score, kind, note)(call)

    of("brier_score_loss", "brier", "event", sk.brier_score_loss)
    of(
        "brier_score_loss",
        "brier",
        "weighted event",
        lambda labels, p, w: sk.brier_score_loss(labels, p, sample_weight=w),
    )
    of("log_loss", "nll", "event", sk.log_loss)
    of(
        "log_loss",
        "nll",
        "classes",
        lambda labels, probs: sk.log_loss(labels, probs, labels=np.arange(probs.shape[1])),
    )
    of("log_loss", "nll", "weighted event", lambda labels, p, w: sk.log_loss(labels, p, sample_weight=w))
    of("roc_auc_score", "auroc", "event", sk.roc_auc_score)
    of("average_precision_score", "average_precision", "event", sk.average_precision_score)

    def pr_area(labels: Array, p: Array) -> float:
        precision, recall, _ = sk.precision_recall_curve(labels, p)
        return sk.auc(recall, precision)

    of("auc(precision_recall_curve)", "average_precision", "event", pr_area)

    def largest_gap(labels: Array, p: Array) -> float:
        observed, stated = calibration_curve(labels, p, n_bins=10)
        return np.max(np.abs(observed - stated))

    def mean_gap(labels: Array, p: Array) -> float:
        observed, stated = calibration_curve(labels, p, n_bins=10, strategy="quantile")
        return np.mean(np.abs(observed - stated))

    of("calibration_curve(uniform), largest gap", "mce", "event", largest_gap)
    of("calibration_curve(quantile), mean gap", "ace", "event", mean_gap)
    of(
        "roc_auc_score of confidence for being right",
        "failure_auroc",
        "classes",
        lambda labels, probs: sk.roc_auc_score(probs.argmax(1) == labels, probs.max(1)),
    )
    of(
        "accuracy_score",
        "accuracy",
        "classes",
        lambda labels, probs: sk.accuracy_score(labels, probs.argmax(1)),
    )
    of(
        "jaccard_score(macro)",
        "miou",
        "classes",
        lambda labels, probs: sk.jaccard_score(labels, probs.argmax(1), average="macro"),
    )
    of(
        "f1_score(macro)",
        "mdice",
        "classes",
        lambda labels, probs: sk.f1_score(labels, probs.argmax(1), average="macro"),
    )
    of("root_mean_squared_error", "rmse", "normal", lambda y, mu, s: sk.root_mean_squared_error(y, mu))
    of(
        "root_mean_squared_error",
        "rmse",
        "weighted normal",
        lambda y, mu, s, w: sk.root_mean_squared_error(y, mu, sample_weight=w),
    )
    of("mean_absolute_error", "mae", "normal", lambda y, mu, s: sk.mean_absolute_error(y, mu))
    of(
        "median_absolute_error",
        "medae",
        "normal",
        lambda y, mu, s: sk.median_absolute_error(y, mu),
        "of an even number of samples the mean of the middle two; ours is the order statistic",
    )
    of("r2_score", "r2", "normal", lambda y, mu, s: sk.r2_score(y, mu))
    of(
        "mean_pinball_loss, mean over levels",
        "pinball",
        "quantiles",
        lambda y, quantiles, levels: np.mean(
            [sk.mean_pinball_loss(y, x, alpha=q) for x, q in zip(quantiles.T, levels, strict=True)]
        ),
    )


def torch_metrics() -> None:
    """Enter torchmetrics' functions; probabilities stay in float64, its sums are float32 in places."""
    import torch
    import torchmetrics.functional.classification as tm
    import torchmetrics.functional.regression as tr

    def of(function: str, score: str, kind: str, call: Callable[..., Any], note: str = "") -> None:
        cell("torchmetrics", function, score, kind, note)(
            lambda *arrays: float(call(*(torch.as_tensor(a) for a in arrays)))
        )

    for norm, score in (("l1", "ece"), ("l2", "rms_ce"), ("max", "mce")):
        of(
            f"binary_calibration_error({norm}, 10 bins)",
            score,
            "event",
            lambda labels, p, norm=norm: tm.binary_calibration_error(p, labels, n_bins=10, norm=norm),
        )
        of(
            f"multiclass_calibration_error({norm}, 10 bins)",
            score,
            "classes",
            lambda labels, probs, norm=norm: tm.multiclass_calibration_error(
                probs, labels, probs.shape[1], n_bins=10, norm=norm
            ),
        )
    of(
        "binary_calibration_error (default)",
        "ece",
        "event",
        lambda labels, p: tm.binary_calibration_error(p, labels),
    )
    of("binary_auroc", "auroc", "event", lambda labels, p: tm.binary_auroc(p, labels))
    of(
        "binary_average_precision",
        "average_precision",
        "event",
        lambda labels, p: tm.binary_average_precision(p, labels),
    )
    of(
        "multiclass_accuracy(micro)",
        "accuracy",
        "classes",
        lambda labels, probs: tm.multiclass_accuracy(probs, labels, probs.shape[1], average="micro"),
    )
    of(
        "multiclass_jaccard_index",
        "miou",
        "classes",
        lambda labels, probs: tm.multiclass_jaccard_index(probs, labels, probs.shape[1]),
    )
    of(
        "multiclass_f1_score(macro)",
        "mdice",
        "classes",
        lambda labels, probs: tm.multiclass_f1_score(probs, labels, probs.shape[1]),
    )
    of(
        "continuous_ranked_probability_score",
        "crps",
        "draws",
        lambda y, draws: tr.continuous_ranked_probability_score(draws, y),
    )
    of(
        "spearman_corrcoef of |e| and std",
        "spearman",
        "normal",
        lambda y, mu, s: tr.spearman_corrcoef((y - mu).abs(), s),
    )
    of(
        "mean_squared_error(squared=False)",
        "rmse",
        "normal",
        lambda y, mu, s: tr.mean_squared_error(mu, y, squared=False),
    )
    of("r2_score", "r2", "normal", lambda y, mu, s: tr.r2_score(mu, y))


def net_cal() -> None:
    """Enter netcal's classes, with ten bins unless their default is meant."""
    import netcal.metrics as nm

    for name, score in (("ECE", "ece"), ("MCE", "mce"), ("ACE", "ace")):
        for kind in ("event", "classes"):
            cell("netcal", f"{name}(10)", score, kind)(
                lambda labels, probs, name=name: getattr(nm, name)(10).measure(probs, labels)
            )

    def of(
        function: str, score: str, call: Callable[[tuple[Array, Array], Array], Any], note: str = ""
    ) -> None:
        cell("netcal", function, score, "normal", note)(lambda y, mu, s: np.mean(call((mu, s), y)))

    of("ENCE(10)", "ence", lambda law, y: nm.ENCE(10).measure(law, y))
    of("UCE(10)", "uce", lambda law, y: nm.UCE(10).measure(law, y))
    of("NLL", "nll", lambda law, y: nm.NLL().measure(law, y))
    of(
        "PinballLoss, 99 levels",
        "pinball",
        lambda law, y: nm.PinballLoss().measure(law, y, q=np.arange(1, 100) / 100),
        "its quantile of level q is an end of the central interval of level q",
    )
    of("PICP(.95)", "coverage_95", lambda law, y: nm.PICP().measure(law, y, q=0.95)[0])
    of(
        "QCE(marginal), 99 levels",
        "mace",
        lambda law, y: nm.QCE(marginal=True).measure(law, y, q=np.arange(1, 100) / 100),
    )


def scoring_rules() -> None:
    """Enter scoringrules' and properscoring's functions."""
    import properscoring as ps
    import scoringrules as sr

    def of(function: str, score: str, kind: str, call: Callable[..., Any], note: str = "") -> None:
        cell("scoringrules", function, score, kind, note)(lambda *arrays: np.mean(call(*arrays)))

    of("crps_normal", "crps", "normal", sr.crps_normal)
    of("logs_normal", "nll", "normal", sr.logs_normal)
    root2, root3 = 2**0.5, 3**0.5
    of("crps_laplace", "crps_laplace", "normal", lambda y, mu, s: sr.crps_laplace(y, mu, s / root2))
    of("logs_laplace", "nll_laplace", "normal", lambda y, mu, s: sr.logs_laplace(y, mu, s / root2))
    of(
        "crps_uniform",
        "crps_uniform",
        "normal",
        lambda y, mu, s: sr.crps_uniform(y, mu - root3 * s, mu + root3 * s),
    )
    for name in ("nrg", "fair", "pwm", "qd", "int"):
        of(
            f"crps_ensemble({name})",
            "crps",
            "draws",
            lambda y, draws, name=name: sr.crps_ensemble(y, draws, estimator=name),
        )
    of("crps_ensemble (default)", "crps", "draws", sr.crps_ensemble)
    of("dssuv_ensemble", "dawid_sebastiani", "draws", sr.dssuv_ensemble)
    of("brier_score", "brier", "event", sr.brier_score)
    of(
        "quantile_score",
        "pinball",
        "quantiles",
        lambda y, quantiles, levels: sr.quantile_score(y[:, None], quantiles, levels),
    )
    of(
        "interval_score",
        "interval_score",
        "interval",
        lambda y, low, high, level: sr.interval_score(y, low, high, 1 - level),
    )

    def weighted(y: Array, quantiles: Array, levels: Array) -> Array:
        half = len(levels) // 2
        return sr.weighted_interval_score(
            y, quantiles[:, half], quantiles[:, :half], quantiles[:, -1:half:-1], 2 * levels[:half]
        )

    of("weighted_interval_score", "wis", "quantiles", weighted)
    of(
        "crps_quantile",
        "pinball",
        "quantiles",
        lambda y, quantiles, levels: sr.crps_quantile(y, quantiles, levels),
        "an approximation of the CRPS",
    )

    cell("properscoring", "crps_gaussian", "crps", "normal")(
        lambda y, mu, s: np.mean(ps.crps_gaussian(y, mu, s))
    )
    cell("properscoring", "crps_ensemble", "crps", "draws")(
        lambda y, draws: np.mean(ps.crps_ensemble(y, draws))
    )
    cell("properscoring", "brier_score", "brier", "event")(
        lambda labels, p: np.mean(ps.brier_score(labels, p))
    )


def uncertainty_toolbox() -> None:
    """Enter uncertainty-toolbox's functions."""
    import uncertainty_toolbox as uct

    def of(function: str, score: str, call: Callable[[Array, Array, Array], Any], note: str = "") -> None:
        cell("uncertainty-toolbox", function, score, "normal", note)(lambda y, mu, s: call(mu, s, y))

    of(
        "mean_absolute_calibration_error",
        "mace",
        lambda mu, s, y: uct.mean_absolute_calibration_error(mu, s, y, vectorized=True),
    )
    of(
        "mean_absolute_calibration_error(quantile)",
        "mace",
        lambda mu, s, y: uct.mean_absolute_calibration_error(mu, s, y, vectorized=True, prop_type="quantile"),
        "the residual's sign is reversed: overprediction reads as underprediction",
    )
    of(
        "root_mean_squared_calibration_error",
        "rmsce",
        lambda mu, s, y: uct.root_mean_squared_calibration_error(mu, s, y, vectorized=True),
    )
    of(
        "miscalibration_area",
        "miscalibration_area",
        lambda mu, s, y: uct.miscalibration_area(mu, s, y, vectorized=True),
    )
    of("sharpness", "sharpness", lambda mu, s, y: uct.sharpness(s))
    of("crps_gaussian", "crps", uct.crps_gaussian)
    of("nll_gaussian", "nll", uct.nll_gaussian)
    of("check_score", "pinball", uct.check_score)
    of("interval_score", "interval_score", uct.interval_score)


def mapie() -> None:
    """Enter MAPIE's functions."""
    from mapie.metrics import calibration as mc
    from mapie.metrics import regression as mr

    cell("MAPIE", "expected_calibration_error (default)", "ece", "event")(mc.expected_calibration_error)
    cell("MAPIE", "expected_calibration_error(10, quantile)", "ece", "event")(
        lambda labels, p: mc.expected_calibration_error(labels, p, num_bins=10, split_strategy="quantile")
    )
    cell("MAPIE", "expected_calibration_error(10)", "ece", "event")(
        lambda labels, p: mc.expected_calibration_error(labels, p, num_bins=10, split_strategy="uniform")
    )
    cell("MAPIE", "top_label_ece(10)", "ece", "classes")(
        lambda labels, probs: mc.top_label_ece(labels, probs, num_bins=10, split_strategy="uniform")
    )
    cell("MAPIE", "expected_calibration_error(10, classwise)", "cwece", "classes")(
        lambda labels, probs: mc.expected_calibration_error(
            (labels == 0).astype(int),
            probs,
            num_bins=10,
            split_strategy="uniform",
            classwise=True,
            class_labels=labels,
        )
    )
    ends = lambda low, high: np.stack([low, high], axis=1)  # noqa: E731
    cell("MAPIE", "regression_coverage_score", "coverage", "interval")(
        lambda y, low, high, level: mr.regression_coverage_score(y, ends(low, high)[:, :, None])[0]
    )
    cell("MAPIE", "regression_mean_width_score", "interval_width", "interval")(
        lambda y, low, high, level: mr.regression_mean_width_score(ends(low, high)[:, :, None])[0]
    )
    cell("MAPIE", "regression_mwi_score", "interval_score", "interval")(
        lambda y, low, high, level: mr.regression_mwi_score(y, ends(low, high)[:, :, None], level)
    )


def weather() -> None:
    """Enter functions of scores and xskillscore."""
    import scores.continuous as sc
    import scores.probability as sp
    import xarray as xr
    import xskillscore as xs

    def rows(array: Array, *names: str) -> Any:
        return xr.DataArray(np.asarray(array, dtype=float), dims=("row", *names))

    for name in ("ecdf", "fair"):
        cell("scores", f"crps_for_ensemble({name})", "crps", "draws")(
            lambda y, draws, name=name: float(
                sp.crps_for_ensemble(rows(draws, "member"), rows(y), "member", method=name)
            )
        )
    cell("scores", "brier_score", "brier", "event")(
        lambda labels, p: float(sp.brier_score(rows(p), rows(labels)))
    )
    cell("scores", "quantile_score, mean over levels", "pinball", "quantiles")(
        lambda y, quantiles, levels: np.mean(
            [float(sc.quantile_score(rows(x), rows(y), q)) for x, q in zip(quantiles.T, levels, strict=True)]
        )
    )
    cell("scores", "interval_score", "interval_score", "interval")(
        lambda y, low, high, level: float(sc.interval_score(rows(low), rows(high), rows(y), level).total)
    )
    cell("scores", "rmse", "rmse", "normal")(lambda y, mu, s: float(sc.rmse(rows(mu), rows(y))))
    cell("scores", "mean_error", "bias", "normal")(lambda y, mu, s: float(sc.mean_error(rows(mu), rows(y))))
    cell("scores", "roc_auc", "auroc", "event")(lambda labels, p: float(sp.roc_auc(rows(p), rows(labels))))
    cell("scores", "mae", "mae", "normal")(lambda y, mu, s: float(sc.mae(rows(mu), rows(y))))
    cell("xskillscore", "crps_ensemble", "crps", "draws")(
        lambda y, draws: float(xs.crps_ensemble(rows(y), rows(draws, "member")))
    )
    cell("xskillscore", "crps_gaussian", "crps", "normal")(
        lambda y, mu, s: float(xs.crps_gaussian(rows(y), rows(mu), rows(s)))
    )
    cell("xskillscore", "rmse", "rmse", "normal")(lambda y, mu, s: float(xs.rmse(rows(y), rows(mu))))
    cell("xskillscore", "spearman_r of |e| and std", "spearman", "normal")(
        lambda y, mu, s: float(xs.spearman_r(rows(np.abs(y - mu)), rows(s)))
    )


def models() -> None:
    """Enter functions of model-diagnostics, relplot and scipy."""
    import model_diagnostics.scoring as ms
    import relplot
    from scipy import stats

    cell("scipy", "stats.entropy", "entropy_mean", "classes")(
        lambda labels, probs: np.mean(stats.entropy(probs, axis=1))
    )
    cell("scipy", "stats.kstest of PIT values", "pit_ks", "normal")(
        lambda y, mu, s: stats.kstest(stats.norm.cdf(y, mu, s), "uniform").statistic
    )
    cell("scipy", "stats.variation", "cv", "normal")(lambda y, mu, s: stats.variation(s))
    cell("scipy", "stats.spearmanr of |e| and std", "spearman", "normal")(
        lambda y, mu, s: stats.spearmanr(np.abs(y - mu), s).statistic
    )

    cell("model-diagnostics", "SquaredError", "brier", "event")(
        lambda labels, p: float(ms.SquaredError()(labels.astype(float), p))
    )
    cell("model-diagnostics", "LogLoss", "nll", "event")(
        lambda labels, p: float(ms.LogLoss()(labels.astype(float), p))
    )
    cell("model-diagnostics", "PinballLoss, mean over levels", "pinball", "quantiles")(
        lambda y, quantiles, levels: np.mean(
            [float(ms.PinballLoss(level=q)(y, x)) for x, q in zip(quantiles.T, levels, strict=True)]
        )
    )
    cell("model-diagnostics", "SquaredError", "rmse", "normal", "its root")(
        lambda y, mu, s: float(ms.SquaredError()(y, mu)) ** 0.5
    )
    cell("relplot", "smECE", "ece", "event", "smoothed with a kernel, no bins")(
        lambda labels, p: float(relplot.smECE(p, labels))
    )


def torch_uncertainty() -> None:
    """Enter torch-uncertainty's classes; torchvision and timm, which they do not need, are stood in for."""
    stand_in(
        "torchvision",
        "timm",
        "lightning",
        "einops",
        "huggingface_hub",
        "safetensors",
        "cv2",
        "glest",
        "scikit_image",
    )
    import torch

    metrics = importlib.import_module("torch_uncertainty.metrics.classification")

    def of(function: str, score: str, make: Callable[[int], Any], note: str = "") -> None:
        def call(labels: Array, probs: Array) -> float:
            metric = make(probs.shape[1])
            metric.update(torch.as_tensor(probs), torch.as_tensor(labels))
            return float(metric.compute())

        cell("torch-uncertainty", function, score, "classes", note)(call)

    of("AURC", "aurc", lambda c: metrics.AURC())
    of("AUGRC", "augrc", lambda c: metrics.AUGRC())
    of("RiskAt80Cov", "risk_at_80", lambda c: metrics.RiskAt80Cov())
    of("BrierScore", "brier", lambda c: metrics.BrierScore(num_classes=c))
    of("CategoricalNLL", "nll", lambda c: metrics.CategoricalNLL())
    of(
        "CalibrationError(10 bins)",
        "ece",
        lambda c: metrics.CalibrationError(task="multiclass", num_classes=c, num_bins=10),
    )


def stand_in(*names: str) -> None:
    """Let modules that are not installed be imported, with anything inside."""

    class Anything(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__init__": lambda self, *a, **k: None})

    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in missing else None

        def create_module(self, spec: Any) -> Any:
            return Anything(spec.name)

        def exec_module(self, module: Any) -> None:
            module.__path__ = []

    missing = set()
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.add(name)
    sys.meta_path.append(Finder())  # type: ignore[arg-type]


LIBRARIES: dict[str, Callable[[], None]] = {
    "scikit-learn": scikit_learn,
    "torchmetrics": torch_metrics,
    "netcal": net_cal,
    "scoringrules": scoring_rules,
    "uncertainty-toolbox": uncertainty_toolbox,
    "MAPIE": mapie,
    "scores": weather,
    "model-diagnostics": models,
    "torch-uncertainty": torch_uncertainty,
}


def row(each: Cell, found: Audit | None, reason: str = "") -> dict[str, Any]:
    """Return what a cell was found to follow, as the registry holds it."""
    with suppress(Exception):
        release = version(each.library)
    content: dict[str, Any] = {
        "library": each.library,
        "version": release,
        "function": each.function,
        "score": each.score,
        "kind": each.kind,
        "follows": [],
        "as_uq_tracking": False,
    }
    if found is None:
        return content | {"reason": reason}
    content["follows"] = [reading.text for reading in found.follows]
    content["as_uq_tracking"] = found.factor == 1 and any(reading.ours for reading in found.follows)
    content["factor"] = found.factor
    content["sets"] = sorted(found.found)
    if not found.follows and found.nearest is not None:
        content["nearest"] = found.nearest.text
        content["departures"] = {name: list(pair) for name, pair in found.departures.items()}
    if found.failed:
        content["failed"] = dict(found.failed)
    return content | ({"note": each.note} if each.note else {})


def main() -> None:
    """Write the registry."""
    warnings.simplefilter("ignore")
    for name, enter in LIBRARIES.items():
        try:
            enter()
        except ImportError as error:
            print(f"{name} is left out: {error}")
    rows = []
    for each in CELLS:
        try:
            rows.append(row(each, audit(each.call, each.score, kind=each.kind)[0]))
        except Exception as error:
            rows.append(row(each, None, f"{type(error).__name__}: {error}"))
        last = rows[-1]
        verdict = last["follows"] or ["NEAREST " + str(last.get("nearest", last.get("reason")))]
        print(
            f"{each.library:20}{each.function:48}{each.score:20}{verdict[0]}  x{last.get('factor', '')}",
            len(last["follows"]),
        )
    text = ",\n".join(json.dumps(each) for each in rows)
    (HERE / "registry.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
