"""How Sphinx builds the site from these pages: ``make docs``."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

project = "uq_tracking"
author = project_copyright = "uq_tracking contributors"
release = version = installed("uq-tracking")

REPOSITORY = "https://github.com/uq-tracking/uq-tracking"
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}
"""Files of the repository's root that the site has a page of."""

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
exclude_patterns = ["_build", "**/*.ipynb", "gallery/*.md5", "gallery/**/*.zip"]

html_theme = "pydata_sphinx_theme"
html_title = "uq_tracking"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "choose-a-metric", "read-a-figure", "changes")}
html_theme_options = {
    "logo": {"text": "uq_tracking"},
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
autodoc_typehints = "none"  # numpydoc's parameters say them
autodoc_default_options = {"member-order": "bysource"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(levi|sklearn_gp)\.py",  # the others train networks, or need a tracker
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}


def _site_links(app: object, page: str, source: list[str]) -> None:
    """Links to the repository's root lead to the pages of the site."""
    for name, target in OUTSIDE.items():
        source[0] = source[0].replace(f"](../{name}", f"]({target}")
    source[0] = re.sub(r"\]\(\.\./([^)]+)\)", rf"]({REPOSITORY}/blob/main/\1)", source[0])


def setup(app: Sphinx) -> None:
    """Register what the pages need before they are read."""
    app.connect("source-read", _site_links)
