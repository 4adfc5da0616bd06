"""The backend from outside: found when installed, made of public parts, and explained by a page that is true."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from uq_tracking import plugins
from uq_tracking.tracking.backend import Backend

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "third_party_backend"
PAGE = (ROOT / "docs" / "write-a-backend.md").read_text(encoding="utf-8")
PUBLIC = {
    "uq_tracking",
    "uq_tracking.curves",
    "uq_tracking.errors",
    "uq_tracking.hookspecs",
    "uq_tracking.testing",
    "uq_tracking.tracking.backend",
}


STRICT = """
import warnings
from uq_tracking.errors import TrackingWarning
warnings.simplefilter("error", TrackingWarning)
"""


def test_it_is_a_distribution_of_its_own_and_found_by_its_entry_point():
    (point,) = metadata.distribution("uq-tracking-trackio").entry_points.select(group="uq_tracking")
    assert (point.name, point.value) == ("trackio", "uq_tracking_trackio")
    backend = plugins.backends()["trackio"]
    assert isinstance(backend, Backend)
    assert backend.status().usable
    assert backend.status().version == metadata.version("trackio")


@pytest.mark.parametrize("path", sorted(EXAMPLE.rglob("*.py")), ids=lambda path: path.name)
def test_it_imports_public_modules_only(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
    ours = {name for name in imported if name.partition(".")[0] == "uq_tracking"}
    assert ours <= PUBLIC


def test_the_example_of_its_readme_runs(tmp_path):
    (script,) = re.findall(
        r"```python\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    hidden = ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL", "TRACKIO_BUCKET_ID", "TRACKIO_DATASET_ID")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    check = "\nassert [run.name for run in trackio.Api().runs('depth')] == ['ensemble-0', 'too-wide']\n"
    done = subprocess.run(
        [sys.executable, "-c", STRICT + script + check],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ensemble " in done.stdout
    assert "too-wide " in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {
        "trackio",
        "state",
    }  # the user's own is in the latter


EXCERPTS = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_code_block_of_the_page_names_its_file():
    assert len(EXCERPTS) == len(re.findall(r"```(?:python|toml)\n", PAGE)) == 8


@pytest.mark.parametrize(("name", "excerpt"), EXCERPTS)
def test_an_excerpt_of_the_page_stands_in_its_file(name, excerpt):
    text = (EXAMPLE / name).read_text(encoding="utf-8")
    places = [text.find(part.rstrip("\n")) for part in excerpt.split("...\n")]
    assert -1 not in places
    assert places == sorted(places)


def test_the_page_names_every_abstract_method_and_every_capability():
    from dataclasses import fields

    from uq_tracking.testing import Capabilities
    from uq_tracking.tracking.backend import Run, RunStore

    methods = Run.__abstractmethods__ | RunStore.__abstractmethods__ | Backend.__abstractmethods__
    for name in [*methods, *(field.name for field in fields(Capabilities))]:
        assert f"`{name}`" in PAGE, name
