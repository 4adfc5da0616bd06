"""A tracker that is there and takes nothing: one call waits, later ones ask nothing, `sync` restores all."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
import warnings
from urllib.parse import urlsplit

import pytest

import uq_tracking as uq
from tests.faults.gateway import Gateway
from tests.faults.job import FINAL, arrays
from tests.faults.stores import differences, mlflow_content
from tests.runs.conftest import use_tracking_uri
from uq_tracking.errors import BackendError, TrackingWarning
from uq_tracking.tracking.deadline import Budget
from uq_tracking.tracking.health import Health
from uq_tracking.tracking.names import scalar_name
from uq_tracking.tracking.spool import entries, read_entry
from uq_tracking_mlflow.run import MLflowRun

pytestmark = pytest.mark.faults

START = Health._start
DEADLINE = 0.5
SLACK = 1.0
"""Seconds for scoring and for a machine that runs other tests too."""


@pytest.fixture
def gate(server, tmp_path, monkeypatch):
    """A gateway before the real server, to which MLflow is set: its address, and what changes its answers."""
    gateway = Gateway(0, urlsplit(server[0]).port, tmp_path)
    threading.Thread(target=gateway.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    uri = f"http://127.0.0.1:{gateway.server_address[1]}"
    use_tracking_uri(monkeypatch, uri)
    monkeypatch.setenv(
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1"
    )  # so that what is left behind ends with the test
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)  # only `sync` sends
    monkeypatch.chdir(tmp_path)
    yield uri, lambda mode: (tmp_path / "mode").write_text(mode)
    gateway.shutdown()
    gateway.server_close()


@pytest.fixture(scope="module")
def undisturbed(server):
    """What a run holds that nothing has disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        use_tracking_uri(patch, server[0])
        run = new_run(server[0])
        for step in range(3):
            log(step, run, step, strict=True)
        log(FINAL, run, strict=True)
    return mlflow_content(server[0], run)


def new_run(uri):
    import mlflow

    client = mlflow.MlflowClient(uri)
    return client.create_run(client.create_experiment(uuid.uuid4().hex)).info.run_id


def log(seed, run, step=None, **options):
    return uq.log(*arrays(seed), run=run, step=step, method="m", figures=False, **options)


@pytest.mark.parametrize("status", [500, 503, 429, 401, 404])
def test_an_api_that_fails_while_its_health_is_well(gate, undisturbed, monkeypatch, status):
    uri, answer = gate
    run = new_run(uri)
    log(0, run, 0, strict=True)
    answer(str(status))
    start = time.monotonic()
    with pytest.warns(TrackingWarning, match="Everything is kept in") as told:
        log(1, run, 1, deadline=DEADLINE)
    assert time.monotonic() - start < DEADLINE + SLACK
    assert len(told) == 1
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", TrackingWarning)
        patch.setattr(Budget, "begin", lambda *_: pytest.fail("a tracker that is known to be sick is asked"))
        log(2, run, 2, deadline=DEADLINE)
        log(FINAL, run, deadline=DEADLINE)
    assert len(list(entries())) == 3
    answer("pass")
    assert not uq.sync().failed
    assert list(entries()) == []
    assert differences(undisturbed, mlflow_content(uri, run)) == []


def test_one_forbidden_run_holds_back_no_other(gate, undisturbed):
    """403 to one run of two: it is asked once, the other one as ever; a strict call raises and is not sent later."""
    uri, answer = gate
    forbidden, own = new_run(uri), new_run(uri)
    log(0, forbidden, 0, strict=True)
    answer(f"forbid {forbidden}")
    with pytest.raises(BackendError, match="denies permission"):
        log(1, forbidden, 1, strict=True)
    assert list(entries()) == []
    with pytest.warns(TrackingWarning, match="denies permission") as told:
        log(1, forbidden, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrackingWarning)
        log(2, forbidden, 2)
        log(FINAL, forbidden)
        for step in range(3):
            log(step, own, step, strict=True)
        log(FINAL, own, strict=True)
    assert len(told) == 1
    assert len(list(entries())) == 3
    assert differences(undisturbed, mlflow_content(uri, own)) == []
    answer("pass")
    assert not uq.sync().failed
    assert differences(undisturbed, mlflow_content(uri, forbidden)) == []


@pytest.mark.parametrize(
    ("mode", "numbers", "is_back"),
    [("empty", 18, True), ("empty", 18, False), ("empty log-batch", 18, True), ("lose crps", 2, True)],
)
def test_steps_that_are_accepted_and_not_kept(gate, undisturbed, caplog, mode, numbers, is_back):
    """As by a proxy that answers 200 and ``{}``: the final call reads them back, and sends or keeps them."""
    uri, answer = gate
    run = new_run(uri)
    log(0, run, 0, strict=True)
    answer(mode)
    log(1, run, 1, strict=True)
    log(2, run, 2, strict=True)
    if is_back:
        answer("pass")
        log(FINAL, run, strict=True)
        assert f"accepted {numbers} numbers" in caplog.text
    else:
        with pytest.warns(TrackingWarning, match="Everything is kept in"):
            log(FINAL, run)
        assert len(uq.sync().failed) == 1
        answer("pass")
        assert not uq.sync().failed
    assert differences(undisturbed, mlflow_content(uri, run)) == []


@pytest.mark.parametrize(
    ("mode", "lost"), [("empty report.json", "uq/report.json"), ("lose uq_curve/pit", "uq_curve/pit")]
)
def test_files_and_curves_that_are_accepted_and_not_kept(gate, undisturbed, mode, lost):
    uri, answer = gate
    run = new_run(uri)
    for step in range(3):
        log(step, run, step, strict=True)
    answer(mode)
    with pytest.warns(TrackingWarning, match=f"does not have what the server accepted: {lost}"):
        log(FINAL, run)
    answer("pass")
    assert not uq.sync().failed
    assert differences(undisturbed, mlflow_content(uri, run)) == []


@pytest.mark.parametrize("mode", ["drip", "later", "hang"])
def test_a_tracker_that_is_back_is_found_while_an_answer_to_it_goes_on(gate, undisturbed, monkeypatch, mode):
    """What is asked in the background ends after a short time, so that the next question finds the tracker well."""
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", START)
    monkeypatch.setattr("uq_tracking.tracking.health.PROBE_SECONDS", 0.5)
    monkeypatch.setattr("uq_tracking.tracking.health.LONGEST_PAUSE", 0.5)
    uri, answer = gate
    run = new_run(uri)
    log(0, run, 0, strict=True)
    answer(mode)
    with pytest.warns(TrackingWarning, match="Everything is kept in"):
        log(1, run, 1, deadline=DEADLINE)
    log(2, run, 2)
    time.sleep(2.0)
    answer("pass")
    end = time.monotonic() + 20
    while list(entries()) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(entries()) == []
    log(FINAL, run, strict=True)
    assert differences(undisturbed, mlflow_content(uri, run)) == []


def test_calls_that_had_arrived_change_nothing_when_sent_again(gate, undisturbed):
    """As those in whose middle a program ends: neither the last step, which they replace, nor a later call."""
    uri, answer = gate
    run = new_run(uri)
    log(0, run, 0, strict=True)
    log(1, run, 1, strict=True)
    answer("hang")
    with pytest.warns(TrackingWarning, match="Everything is kept in"):
        log(2, run, 2, deadline=DEADLINE)
    log(FINAL, run)
    answer("pass")
    for path in entries():
        read_entry(path).send(MLflowRun(run))
    assert not uq.sync().failed
    assert differences(undisturbed, mlflow_content(uri, run)) == []


def test_refused_credentials_are_named(gate):
    uri, answer = gate
    run = new_run(uri)
    answer("401")
    with pytest.raises(BackendError, match="refuses the credentials"):
        log(0, run, 0, strict=True)


def test_a_database_that_another_process_holds(sqlite_uri, tmp_path, monkeypatch):
    """As a backup does: one call waits, the other is kept at once, and `sync` restores both."""
    import mlflow

    use_tracking_uri(monkeypatch, sqlite_uri)
    monkeypatch.setattr("uq_tracking.tracking.health.Health._start", lambda self: None)
    monkeypatch.chdir(tmp_path)
    run = new_run(sqlite_uri)
    log(0, run, 0, strict=True)
    holder = sqlite3.connect(sqlite_uri.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        start = time.monotonic()
        with pytest.warns(TrackingWarning, match="Everything is kept in"):
            log(1, run, 1, deadline=DEADLINE)
        found = time.monotonic()
        log(2, run, 2, deadline=DEADLINE)
        kept = time.monotonic()
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert found - start < DEADLINE + SLACK
    assert kept - found < DEADLINE
    assert not uq.sync().failed
    assert list(entries()) == []
    history = mlflow.MlflowClient(sqlite_uri).get_metric_history(run, scalar_name("rmse"))
    assert {point.step: point.value for point in history} == {
        step: uq.evaluate(*arrays(step)).scores["rmse"] for step in range(3)
    }
