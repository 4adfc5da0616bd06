"""The backend from outside: found when installed, made of public parts, and explained by a page that is true."""

from __future__ import annotations

import ast
import csv
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from uq_tracking import plugins
from uq_tracking.testing import Capabilities, RunContract, StoreContract
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
    "uq_tracking.tracking.folder",
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


@pytest.mark.slow
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


@pytest.mark.parametrize(("name", "excerpt"), [pair for pair in EXCERPTS if pair[0].endswith(".py")])
def test_an_excerpt_imports_what_it_uses(name, excerpt):
    nodes = ast.walk(ast.parse((EXAMPLE / name).read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.name for node in imports for alias in node.names}
    lines = excerpt.splitlines()
    shown = " ".join(line for line in lines if re.match(r" *(from|import) ", line))
    code = " ".join(line for line in lines if not re.match(r" *(from|import) ", line))
    used = {alias for alias in imported if re.search(rf"\b{alias}\b", code)}
    assert {alias for alias in used if not re.search(rf"\b{alias}\b", shown)} == set()


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


(WHOLE,) = re.findall(r"```python whole\n(.*?)```", PAGE, re.DOTALL)
PLAIN = ModuleType("plain")
sys.modules["plain"] = PLAIN  # its annotations are looked up there
exec(compile(WHOLE, "write-a-backend.md", "exec"), vars(PLAIN))


def test_the_whole_backend_of_the_page_imports_public_modules_only():
    imported = {node.module for node in ast.walk(ast.parse(WHOLE)) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.partition(".")[0] == "uq_tracking"} <= PUBLIC


class Plain:
    capabilities = Capabilities(curves=False, where=None, listing=100)

    @pytest.fixture
    def store(self, tmp_path):
        (backend,) = PLAIN.uq_backends()
        return backend.store(str(tmp_path / "runs"))[0]

    def series(self, store, run_id, name):
        with (store.path / run_id / "numbers.csv").open(newline="", encoding="utf-8") as file:
            return [(int(step), float(value)) for key, step, value in csv.reader(file) if key == name]

    @contextmanager
    def outage(self, store, run):
        """The run's folder is gone."""
        elsewhere = run.folder.with_name("moved-away")
        shutil.move(run.folder, elsewhere)
        yield PLAIN.PlainRun(run.folder, "plain")
        shutil.move(elsewhere, run.folder)

    refusal = outage


class TestPlainRun(Plain, RunContract):
    pass


class TestPlainStore(Plain, StoreContract):
    pass
