"""Text tags as entries of the run's config: ``uq.method`` is ``config["uq"]["method"]``.

Nested, because the page and its grouping show nested config keys with a dot; other tags are plain config keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uq_tracking.errors import BackendError
from uq_tracking.tracking.names import VERDICT_TAG

SECTION = "uq"


def config_with(config: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Config entries to update so that ``tags`` are set without losing other entries."""
    section = config.get(SECTION, {})
    if not isinstance(section, Mapping):
        raise BackendError(
            f"run.config[{SECTION!r}] is {section!r}, but tags are kept there as a dictionary; "
            f"rename your config entry {SECTION!r}"
        )
    changed: dict[str, Any] = {}
    for name, value in tags.items():
        prefix, _, rest = name.partition(".")
        if prefix == SECTION and rest:
            changed[SECTION] = {**changed.get(SECTION, section), rest: str(value)}
        else:
            changed[name] = str(value)
    return changed


def verdicts_in(tags: Mapping[str, str]) -> dict[str, str]:
    """The verdicts among the tags, named like the scores of their splits: ``uq/verdict``, ``uq/test/verdict``."""
    parts = {name: name.split(".") for name in tags if f"{name}.".startswith(f"{VERDICT_TAG}.")}
    return {"/".join([SECTION, *split, kind]): str(tags[name]) for name, (_, kind, *split) in parts.items()}


def tags_in(config: Mapping[str, Any]) -> dict[str, str]:
    """Tags in a config: its section ``uq``, and every other text entry."""
    section = config.get(SECTION, {})
    nested = section if isinstance(section, Mapping) else {}
    tags = {
        name: value for name, value in config.items() if isinstance(value, str) and not name.startswith("_")
    }
    return tags | {f"{SECTION}.{name}": value for name, value in nested.items() if isinstance(value, str)}
