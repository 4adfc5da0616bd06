"""What things are called in a run: the same on every tracker.

==========================  =====================================================================
``uq/<key>``                headline scores: the few that answer whether a model is good and honest
``uq_<family>/<key>``       other scores, if requested, by what they judge: ``uq_accuracy``,
                            ``uq_scoring``, ``uq_calibration``, ``uq_ranking``, ``uq_spread``, ``uq_other``
``uq_recalibration/<name>`` parameters of recalibrations, such as ``std_scale``
``uq_recalibrated/<key>``   the same scores after recalibration by the first method; for further methods
                            ``uq_recalibrated/<method>/<key>``
``uq_curve/<name>``         curves, in the tracker's own charts
``uq_<name>.png``           figures, at the root because trackers compare only root-level images
``uq_map/<case>``           map panels
``uq_classes.csv``          scores of each class
``uq_worst/cases``          tables, where the tracker shows any: of the drawn cases, and as ``uq_worst/classes`` and
                            ``uq_worst/strata`` of classes and strata
``uq/report.json``          the whole report
``uq/statistics.npz``       the statistics that all scores are functions of
``uq/recalibration.json``   recalibration parameters, when there are any
``uq/predictions.npz``      target, mean, std
``uq/maps.npz``             the drawn cases, and their color limits
==========================  =====================================================================

A curve whose definition depends on a non-default setting says so in its name: ``uq_curve/reliability.bins20``,
``uq_curve/calibration.student_t4``. Trackers draw everything under one name as one line and cannot delete points, so
curves with different definitions need different names, the same in every run.

A metric's declaration says whether it belongs to the headline, and its family.

With a split, ``uq/<split>/<key>``, ``uq_ranking/<split>/<key>``, ``uq_recalibrated/<split>/<key>``,
``uq_curve/<split>/<name>``, ``uq_<split>_<name>.png``,
``uq_map/<split>/<case>`` and ``uq/<split>/report.json``. The outputs of a model with several are named like splits:
``uq/<output>/<key>``, ``uq/<split>/<output>/<key>``, ``uq_<split>_<output>_<name>.png``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from uq_tracking import plugins
from uq_tracking.curves.spec import spec_of
from uq_tracking.errors import SettingsError
from uq_tracking.metrics.registry import FAMILIES
from uq_tracking.settings import Settings

METHOD_TAG = "uq.method"
SCHEMA_TAG = "uq.schema"
VERSION_TAG = "uq.version"
SCORES_TAG = "uq.scores"
"""Digest of the scores and settings that a run shows; code that writes scores writes this too."""
VERDICT_TAG = "uq.verdict"
"""The verdict in a few words."""
SETTINGS_TAG = "uq.settings"
"""How a run was scored, in a few words."""
RESCORED_TAG = "uq.rescored"
"""Set when a rescoring is complete, to what was asked for and the digest of the scores it left."""
ORIGIN_TAG = "uq.origin"
"""Names the run that a substitute stands for, or the call or fit for which a run was created."""

REPORT_FILE = "report.json"
STATISTICS_FILE = "statistics.npz"
RECALIBRATION_FILE = "recalibration.json"
PREDICTIONS_FILE = "predictions.npz"
MAPS_FILE = "maps.npz"
COMPARISON_NAME, PAGE_FILE = "uq comparison", "uq_comparison.html"
"""The run that ``Comparison.log`` makes, and the page that it stores."""

HEADLINE, OTHER, CURVES, MAPS, WORST = "uq", "uq_other", "uq_curve", "uq_map", "uq_worst"
SECTIONS = (HEADLINE, *(f"uq_{family}" for family in FAMILIES), OTHER, "uq_recalibrated", "uq_recalibration")
"""Sections of numbers, in the order people read them."""

_SPLIT = re.compile(r"[A-Za-z0-9_. -]{1,60}")


def check_split(split: str | None, name: str = "split") -> str | None:
    """Check that every tracker accepts the split in a name; ``name`` is that of the option.

    Raises
    ------
    SettingsError
        It has characters other than letters, digits, ``_``, ``-``, ``.`` and spaces, or is too long.
    """
    if split is None or (isinstance(split, str) and _SPLIT.fullmatch(split) and split.strip(". ") == split):
        return split
    raise SettingsError(
        f"{name} is {split!r}; use up to 60 letters, digits, '_', '-', '.' and spaces, for example 'test'"
    )


def output_split(split: str | None, output: str) -> str:
    """The prefix of one output's names: below the split, if there is one.

    >>> output_split("test", "tx"), output_split(None, "tx")
    ('test/tx', 'tx')
    """
    check_split(output)
    return _joined("/", split, output)


def scalar_name(key: str, split: str | None = None, task: str = "regression") -> str:
    """Name a score, in the section of the headline or of its family.

    >>> scalar_name("nll"), scalar_name("nll", "test"), scalar_name("pit_ks", "test")
    ('uq/nll', 'uq/test/nll', 'uq_calibration/test/pit_ks')
    """
    metric = plugins.metrics(task).get(key)
    if metric is None or (metric.family not in FAMILIES and not metric.headline):
        section = OTHER
    else:
        section = HEADLINE if metric.headline else f"uq_{metric.family}"
    return _joined("/", section, split, key)


def parameter_name(name: str, split: str | None = None) -> str:
    """Name a parameter of a recalibration.

    >>> parameter_name("std_scale", "test")
    'uq_recalibration/test/std_scale'
    """
    return _joined("/", "uq_recalibration", split, name)


def recalibrated_name(key: str, split: str | None = None, method: str | None = None) -> str:
    """Name a score after recalibration.

    >>> recalibrated_name("nll"), recalibrated_name("nll", "test", "cdf_isotonic")
    ('uq_recalibrated/nll', 'uq_recalibrated/test/cdf_isotonic/nll')
    """
    return _joined("/", "uq_recalibrated", split, method, key)


def curve_name(
    name: str,
    split: str | None = None,
    settings: Mapping[str, Any] | None = None,
    task: str = "regression",
) -> str:
    """Name a curve, including the settings that define it where they are not the defaults.

    >>> curve_name("calibration", "test"), curve_name("reliability", settings={"n_bins": 20})
    ('uq_curve/test/calibration', 'uq_curve/reliability.bins20')
    """
    spec, given, usual = spec_of(name, task), settings or {}, Settings()
    for setting in () if spec is None else spec.settings:
        value = given.get(setting, getattr(usual, setting))
        if setting == "family" and given.get("distribution"):
            name += f".{given['distribution']}"
        elif value == getattr(usual, setting):
            continue
        elif setting == "n_bins":
            name += f".bins{value}"
        elif setting == "family":
            name += f".{value}" + (f"{given.get('dof', usual.dof):g}" if value == "student_t" else "")
        else:
            name += f".{setting}{value}"
    return _joined("/", CURVES, split, name)


def tag_name(tag: str, split: str | None = None) -> str:
    """Name a tag that a run has once per split.

    >>> tag_name(RESCORED_TAG), tag_name(RESCORED_TAG, "test")
    ('uq.rescored', 'uq.rescored.test')
    """
    return _joined(".", tag, split and split.replace("/", "."))


def split_order(split: str | None) -> tuple[bool, bool, str]:
    """Return where a split stands among others: none first, then the test split, then by name.

    >>> sorted(["val", "train", "test/tx", None, "test"], key=split_order)
    [None, 'test', 'test/tx', 'train', 'val']
    """
    return bool(split), (split or "").split("/")[0] != "test", split or ""


def figure_name(name: str, split: str | None = None) -> str:
    """Name a figure, without suffix.

    >>> figure_name("calibration", "test")
    'uq_test_calibration'
    """
    return _joined("_", "uq", split and split.replace("/", "_"), name)


def map_name(case: str, split: str | None = None, panel: str = "uncertainty") -> str:
    """Name the map panel of a case.

    >>> map_name("17", "test"), map_name("17", panel="bias")
    ('uq_map/test/17', 'uq_map/17_bias')
    """
    return _joined("/", MAPS, split, case if panel == "uncertainty" else f"{case}_{panel}")


def worst_name(name: str, split: str | None = None) -> str:
    """Name a table of the worst cases, classes or strata.

    >>> worst_name("cases", "test")
    'uq_worst/test/cases'
    """
    return _joined("/", WORST, split, name)


def file_name(file: str, split: str | None = None) -> str:
    """Name a stored file.

    >>> file_name(REPORT_FILE, "test")
    'uq/test/report.json'
    """
    return _joined("/", "uq", split, file)


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)
