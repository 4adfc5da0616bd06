"""The papers that can be reproduced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uq_tracking.errors import SettingsError, closest

EVERY = "all"


@dataclass(frozen=True)
class Paper:
    """A paper and the module that reproduces it by a function ``reproduce(study)``."""

    title: str
    citation: str
    module: str


PAPERS: dict[str, Paper] = {
    "merci": Paper(
        "MeRCI: a new metric to evaluate the correlation between predictive uncertainty and true error",
        "Moukari, Picard, Simon, Jurie, 2018",
        "uq_tracking_papers.merci",
    ),
    "n-merci": Paper(
        "n-MeRCI: a new metric to evaluate the correlation between predictive uncertainty and true error",
        "Moukari, Simon, Picard, Jurie, IROS 2019",
        "uq_tracking_papers.n_merci",
    ),
    "gustafsson": Paper(
        "Evaluating Scalable Bayesian Deep Learning Methods for Robust Computer Vision",
        "Gustafsson, Danelljan, Schön, 2020",
        "uq_tracking_papers.gustafsson",
    ),
    "xiong": Paper(
        "Uncertainty Quantification Metrics for Deep Regression",
        "Xiong, Kristoffersson Lind, Forssén, Krüger, 2024",
        "uq_tracking_papers.xiong",
    ),
    "levi": Paper(
        "Evaluating and calibrating uncertainty prediction in regression tasks",
        "Levi, Gispan, Giladi, Fetaya, 2019",
        "uq_tracking_papers.levi",
    ),
}


def chosen(papers: str | Sequence[str]) -> list[str]:
    """Keys of the papers, in the order of `PAPERS`.

    Raises
    ------
    SettingsError
        There is no such paper.
    """
    asked = [papers] if isinstance(papers, str) else list(papers)
    unknown = [name for name in asked if name != EVERY and name not in PAPERS]
    if unknown:
        raise SettingsError(
            f"no paper is called {unknown[0]!r}; choose from {', '.join(PAPERS)}, {EVERY}"
            f"{closest(unknown[0], list(PAPERS))}"
        )
    return [name for name in PAPERS if name in asked or EVERY in asked or not asked]
