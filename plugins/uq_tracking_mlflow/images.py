"""Pictures for MLflow's image grid, which would recompress them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL.PngImagePlugin import PngImageFile


class StoredPng(PngImageFile):
    """A PNG file as an image that saves the file's own bytes; derived images, such as thumbnails, are ordinary.

    Parameters
    ----------
    png
        The file's content.
    """

    def __init__(self, png: bytes) -> None:
        super().__init__(BytesIO(png))
        self._png = png

    def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
        """Write the file's own bytes, whatever the options; see ``PIL.Image.Image.save``."""
        Path(fp).write_bytes(self._png)
