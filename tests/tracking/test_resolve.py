"""From what a user writes to the run that is meant."""

from __future__ import annotations

import shutil

import pytest

from tests.tracking.helpers import FolderTracker, plugin
from uq_tracking.errors import BackendError, RunNotFoundError, SettingsError, UnknownBackendError
from uq_tracking.tracking.backend import BackendStatus
from uq_tracking.tracking.folder import FolderBackend, FolderStore
from uq_tracking.tracking.resolve import find_backend, open_store, targets_of


def test_backends_are_found_by_name_and_by_scheme():
    other = FolderTracker("other")
    other.schemes = ("other-offline",)
    with plugin("test-other", uq_backends=[other]):
        assert find_backend("other") is other
        assert find_backend("other-offline") is other
        assert find_backend("dir").name == "dir"


def test_an_unknown_scheme_lists_the_known_ones():
    with pytest.raises(UnknownBackendError, match=r"'gopher'; choose from .*dir, .*uq-tracking backends"):
        open_store("gopher:x")


def test_a_plain_word_is_no_address():
    with pytest.raises(BackendError, match="mlflow:results or dir:results"):
        open_store("results")


@pytest.mark.parametrize("scheme", ["dir", "mlflow", "wandb", "tensorboard"])
def test_a_scheme_without_an_address_is_refused_before_anything_is_scored(scheme):
    with pytest.raises(SettingsError, match=f"names no place; write for example {scheme}:depth"):
        targets_of(f"{scheme}:", None, name="x")


def test_an_address_of_a_tracker_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch):
    hint = BackendStatus("dir", usable=False, hint="pip install it")
    monkeypatch.setattr(FolderBackend, "status", lambda self: hint)
    with pytest.raises(BackendError, match="dir is not installed; pip install it"):
        open_store(f"dir:{tmp_path}")


def test_an_address_may_hold_colons(tmp_path):
    run = FolderStore(tmp_path / "a:b").create("x")
    store, run_id = open_store(run.uri)
    assert (store.path, run_id) == (tmp_path / "a:b", run.path.name)


def test_a_run_that_cannot_be_adopted_fails_when_it_is_opened():
    class Picky(FolderTracker):
        def adopt(self, run):
            raise RunNotFoundError("it has ended")

    with plugin("test-picky", uq_backends=[Picky("picky")]):
        (target,) = targets_of(1.5, "picky", name="x")
        assert (target.backend, target.label) == ("picky", "1.5")
        with pytest.raises(RunNotFoundError, match="it has ended"):
            target.open()


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    (target,) = targets_of(f"dir:{tmp_path}/new", None, name="x")
    assert not (tmp_path / "new").exists()
    assert target.open().uri.startswith(f"dir:{tmp_path}/new/")


def test_a_run_that_was_made_and_is_gone_is_not_made_again(tmp_path):
    (target,) = targets_of(f"dir:{tmp_path}/new", None, name="x")
    shutil.rmtree(target.open().path)
    with pytest.raises(RunNotFoundError):
        target.open()
