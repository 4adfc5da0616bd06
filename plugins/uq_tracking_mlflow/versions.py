"""What depends on MLflow's version."""

from __future__ import annotations

import re
from importlib import metadata

OLDEST = (2, 16)
"""The first version that works with numpy 2."""
LONG_TAGS = (3, 15)
"""From this version on, an experiment's tag may have 20000 characters; before, 5000."""
IMAGE_GRID = (3, 11)
"""Before this version, ``log_image`` with a slash in its key stores files that can be neither shown nor downloaded
(mlflow issues 21085 and 22165)."""


def installed() -> str | None:
    """Version of the installed MLflow, full or skinny, from its metadata."""
    for distribution in ("mlflow", "mlflow-skinny"):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


def is_at_least(version: str, oldest: tuple[int, int]) -> bool:
    """Compare major and minor version.

    >>> is_at_least("3.9.0", (3, 11)), is_at_least("3.11.0rc1", (3, 11))
    (False, True)
    """
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= oldest
