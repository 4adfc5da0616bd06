"""The description of a run: our part stands between two marks, and the user's own text stays around them."""

from __future__ import annotations

import re
from collections.abc import Collection

from uq_tracking.tracking.overview import Description

TAG = "mlflow.note.content"
LONGEST = 7500
"""Maximum characters; MLflow silently cuts a tag at 8000."""
_CLASSIC = "get-artifact?path={file}&run_uuid={run_id}"


def with_part(text: str, description: Description, run_id: str, files: Collection[str]) -> str | None:
    """The text with our part inserted, or replacing the one it has.

    Parameters
    ----------
    text
        The run's current description.
    description
        What to say; figures not among ``files``, the names at the artifact root, are left out.

    Returns
    -------
    str or None
        None if even the shortest form would not fit.
    """
    first, last = _marks(description.split)
    before, after = text, ""
    found = re.search(f"{re.escape(first)}.*?{re.escape(last)}", text, re.DOTALL)
    if found:
        before, after = text[: found.start()], text[found.end() :]
    figures = [
        f"![{title}]({_CLASSIC.format(file=f'{name}.png', run_id=run_id)})"
        for name, title in (description.figures or {}).items()
        if f"{name}.png" in files
    ]
    for part in (f"{description.text}\n\n{' '.join(figures)}", description.text, description.lead):
        shown = part.strip().replace("\\<", "&lt;")  # MLflow's renderer shows the backslash
        joined = "\n\n".join(piece for piece in (before.strip(), first, shown, last, after.strip()) if piece)
        if len(joined) <= LONGEST:
            return joined
    return None


def _marks(split: str | None) -> tuple[str, str]:
    """Link definitions, which no renderer shows."""
    name = f"uq_tracking{'' if split is None else f' {split}'}"
    return f"[//]: # ({name})", f"[//]: # (end of {name})"
