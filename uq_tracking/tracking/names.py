"""What things are called in a run: the same on every tracker.

==========================  =====================================================================
``uq/<key>``                every defined score
``uq/recalibration/<name>`` parameters of recalibrations, such as ``std_scale``
``uq_recalibrated/<key>``   every defined score after recalibration by the first method, and after a further
                            one ``uq_recalibrated/<method>/<key>``
``uq_curve/<name>``         curves, in the tracker's own charts
``uq_<name>.png``           figures, at the root because trackers compare only root-level images
``uq_map/<case>``           map panels
``uq/report.json``          the whole report
``uq/statistics.npz``       the statistics that all scores are functions of
``uq/recalibration.json``   recalibration parameters, when there are any
``uq/predictions.npz``      target, mean, std
==========================  =====================================================================

With a split, ``uq/<split>/<key>``, ``uq_recalibrated/<split>/<key>``, ``uq_curve/<split>/<name>``,
``uq_<split>_<name>.png``,
``uq_map/<split>/<case>`` and ``uq/<split>/report.json``.
"""

from __future__ import annotations

import re

from uq_tracking.errors import SettingsError

METHOD_TAG = "uq.method"
SCHEMA_TAG = "uq.schema"
VERSION_TAG = "uq.version"

REPORT_FILE = "report.json"
STATISTICS_FILE = "statistics.npz"
RECALIBRATION_FILE = "recalibration.json"
PREDICTIONS_FILE = "predictions.npz"

_SPLIT = re.compile(r"[A-Za-z0-9_. -]{1,60}")


def check_split(split: str | None) -> str | None:
    """Check that every tracker takes the split in a name.

    Raises
    ------
    SettingsError
        It has other characters than letters, digits, ``_``, ``-``, ``.`` and blanks, or is too long.
    """
    if split is None or (_SPLIT.fullmatch(split) and split.strip(". ") == split):
        return split
    raise SettingsError(
        f"split is {split!r}; trackers take up to 60 letters, digits, '_', '-', '.' and blanks, for example 'test'"
    )


def scalar_name(key: str, split: str | None = None) -> str:
    """Name a score.

    >>> scalar_name("nll"), scalar_name("nll", "test")
    ('uq/nll', 'uq/test/nll')
    """
    return _joined("/", "uq", split, key)


def recalibrated_name(key: str, split: str | None = None, method: str | None = None) -> str:
    """Name a score after recalibration.

    >>> recalibrated_name("nll"), recalibrated_name("nll", "test", "cdf_isotonic")
    ('uq_recalibrated/nll', 'uq_recalibrated/test/cdf_isotonic/nll')
    """
    return _joined("/", "uq_recalibrated", split, method, key)


def curve_name(name: str, split: str | None = None) -> str:
    """Name a curve.

    >>> curve_name("calibration", "test")
    'uq_curve/test/calibration'
    """
    return _joined("/", "uq_curve", split, name)


def figure_name(name: str, split: str | None = None) -> str:
    """Name a figure, without suffix.

    >>> figure_name("calibration", "test")
    'uq_test_calibration'
    """
    return _joined("_", "uq", split, name)


def map_name(case: str, split: str | None = None) -> str:
    """Name the map panel of a case.

    >>> map_name("17", "test")
    'uq_map/test/17'
    """
    return _joined("/", "uq_map", split, case)


def file_name(file: str, split: str | None = None) -> str:
    """Name a stored file.

    >>> file_name(REPORT_FILE, "test")
    'uq/test/report.json'
    """
    return _joined("/", "uq", split, file)


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)
