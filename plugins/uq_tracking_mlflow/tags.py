"""Names of tags, as MLflow accepts them."""

from __future__ import annotations

import logging
import os
import posixpath
import re
from functools import lru_cache

_log = logging.getLogger("uq_tracking")
LONGEST = 250
REFUSED = re.compile(r"[^\w/.\- ]" if os.name == "nt" else r"[^\w/.\- :]")
"""Characters that MLflow refuses in names."""


@lru_cache(maxsize=1024)
def tag_key(name: str) -> str:
    """A tag name that MLflow accepts: a request with any other is refused with all its scores.

    >>> tag_key("augment(strong)"), tag_key("data/v1"), tag_key("../data")
    ('augment_strong_', 'data/v1', '___data')
    """
    key = REFUSED.sub("_", name)[:LONGEST] or "_"
    if posixpath.normpath(key) != key or key.startswith(("/", "..")) or key == ".":
        key = re.sub(r"[/.]", "_", key)
    if key != name:
        _log.warning("MLflow refuses the tag name %s; logged as %s", name, key)
    return key
