"""How Sphinx builds the site from these pages: ``make docs``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version as installed
from pathlib import Path

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
import gallery_runs  # noqa: E402  its folder is on the path only now

project = "uq_tracking"
author = project_copyright = "uq_tracking contributors"
release = version = installed("uq-tracking")

REPOSITORY = "https://github.com/uq-tracking/uq-tracking"
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
"""Files of the repository's root that the site has a page of."""
INDEX = {
    "what-is-uncertainty": "epistemic, epistemic uncertainty, aleatoric, aleatoric uncertainty, total uncertainty",
    "what-is-calibration": "calibration, calibrated, coverage",
    "ranking-errors": "sparsification, ranking, MeRCI, n-MeRCI, n_merci, AUSE, AURG, ause_rmse, aurg_rmse, good AUSE, ranking metric",
    "sharpness": "sharpness, proper score, scoring rule, CRPS, NLL, log likelihood",
    "pixels": "pixels, correlated, independence, independent pixels, spatial correlation, iid",
    "dense": "log-variance, log variance, variance, depth, optical flow, dense regression, heteroscedastic",
    "segmentation": "dice, segmentation, IoU, patients, organ, worst class, per class, class sure",
    "tabular": "credible interval, quantile, quantiles, missing scores, quantile regression, tabular, prediction interval",
    "time-series": "time series, forecast, lead time, autocorrelation",
    "posteriors": "ensemble, deep ensemble, MC dropout, dropout, posterior, Bayesian, Gaussian process, Laplace, draws",
    "classification": "classification, LLM, confidence, softmax, logits, Brier score, ece_top, mce",
    "classification#Scores": "ECE, expected calibration error, torchmetrics calibration error",
    "classification#Recalibration": "temperature, temperature scaling, Platt scaling",
    "recalibration": "recalibration, recalibrate, conformal, std scaling, std small, fix std, deployment, correct std, scale factor, "
    "std_isotonic",
    "distributions": "sample weights, mixture, density, multiple outputs",
    "distributions#Missing values and several outputs": "missing values, NaN, mask",
    "distributions#Weights": "weights",
    "intervals": "effective number of samples, independent samples, verdict, confidence interval, overconfident, "
    "underconfident, too small, too narrow, too wide, bootstrap",
    "intervals#Drift": "drift",
    "intervals#Noise floors": "noise floor, p-value, good ECE, noise",
    "comparison": "compare, better model, better method, best model, best method, significant, significance, luck, baseline, "
    "best calibrated, rank models",
    "comparison#What a tie means": "tie, equal methods, seeds",
    "comparison#Fail CI when coverage drops": "CI, fail CI, fail-if, gate",
    "rescoring": "predictions.npz, stored predictions, pandas, rescore, alpha, old runs, recompute, older version, another version, "
    "upgrade",
    "rescoring#Pooling": "pooling",
    "scale": "Spark, dask, Ray, GPU, streaming, distributed, large data, big data, memory, 10^8, "
    "million, billion, data size",
    "recipes": "recipe, script",
    "recipes#LightGBM quantiles": "LightGBM, LightGBM quantiles, quantiles LightGBM, LightGBM quantile regression",
    "recipes#XGBoost quantiles": "XGBoost",
    "recipes#NGBoost": "NGBoost",
    "recipes#GPyTorch": "GPyTorch",
    "recipes#BoTorch": "BoTorch",
    "recipes#accelerate": "accelerate",
    "recipes#Hydra": "Hydra",
    "recipes#Searches": "hyperparameter, hyperparameter search, tuning, Optuna",
    "recipes#Cross-validation and grid search": "grid search, cross-validation",
    "write-a-backend": "own backend, custom backend, own tracker",
    "frameworks": "PyTorch, training loop, own loop, custom loop, Lightning, Hugging Face, Keras",
    "frameworks#torchmetrics": "torchmetrics",
    "frameworks#scikit-learn": "scikit-learn",
    "choose-a-metric": "out-of-distribution, OOD, prediction sets, survival, choose metric, outliers",
    "conventions": "scikit-learn ECE, netcal, uncertainty-toolbox, conformance, audit, another library, "
    "ENCE, ENCE differs, ENCE different, ECE differs",
    "mlflow": "MLflow, sqlite, tracking URI",
    "wandb": "wandb, Weights & Biases, sweep",
    "start": "standard deviation, notebook, install",
    "trackers": "TensorBoard, DVCLive, Aim, folder, address",
    "reliability": "outage, hang, hangs, freeze, crash, tracker down, lost, deadline, spool, sync, offline, server down, "
    "timeout, unreachable, server dies, server restart, server restarts, mlflow dies, mlflow crash, tracker fails, training stops",
    "curves": "own figure, custom figure, strata, subgroups",
    "curves#Your own metric": "own metric, custom metric, add metric, new metric",
    "curves#Your own curve": "own curve, custom curve",
    "curves#Is the test set large enough?": "stability, sample size, test set size",
}
"""What a reader would search for, and the page or heading that answers: index entries rank above all other text."""

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "**/*.ipynb",
    "sg_execution_times.rst",
    "**/sg_execution_times.rst",
    "gallery/*.md5",
    "gallery/**/*.zip",
]

html_theme = "pydata_sphinx_theme"
html_title = f"uq_tracking {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_search_scorer = str(DOCS / "scorer.js")
html_sidebars = {page: [] for page in ("index", "start", "choose-a-metric", "read-a-figure", "changes")}
html_theme_options = {
    "logo": {"text": f"uq_tracking {release}"},
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pages begin at the level that suits them on GitHub too

default_role = "literal"  # single backquotes of docstrings that name no object are code
autosummary_generate = True
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc's parameters say them
autodoc_default_options = {"member-order": "bysource"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(gallery_runs.SCRIPTS),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "image_scrapers": ("gallery_runs.logged_figures",),
    "reset_argv": "gallery_runs.options",
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}


class Lines(HtmlFormatter[str]):
    """Puts each line of code in an element, so that a long line goes on further in than it begins."""

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Wrap the lines, then the block."""
        return super().wrap((kind, _line(text) if kind else text) for kind, text in source)


def _line(text: str) -> str:
    inside = len(text) - len(text.lstrip(" ")) + 4
    return f'<span class="line" style="padding-left: {inside}ch; text-indent: -{inside}ch">{text}</span>'


PygmentsBridge.html_formatter = Lines


def _site_links(app: object, page: str, source: list[str]) -> None:
    """Turn links to the repository's root into links to pages and downloads, and enter the page into the index."""
    for place, words in INDEX.items():
        name, _, heading = place.partition("#")
        if name == page:
            entries = ", ".join(f"! {word}" for word in words.split(", "))
            line = rf"^#+ {re.escape(heading) if heading else '.*'}\n"
            source[0] = re.sub(
                line, rf"\g<0>\n```{{index}} {entries}\n```\n", source[0], count=1, flags=re.MULTILINE
            )
    source[0] = re.sub(r"\[([^]]+)\]\((\.\./[^)]+\.ipynb)\)", r"{download}`\1 <\2>`", source[0])
    source[0] = re.sub(r"\]\(\.\./examples/(gallery/\w+)\.py\)", r"](\1.rst)", source[0])
    for name, target in OUTSIDE.items():
        source[0] = source[0].replace(f"](../{name}", f"]({target}")
    source[0] = re.sub(r"\]\(\.\./([^)]+)\)", rf"]({REPOSITORY}/blob/main/\1)", source[0])


def setup(app: Sphinx) -> None:
    """Register what the pages need before they are read."""
    app.connect("source-read", _site_links)
