"""What MeRCI and n-MeRCI find, at the smallest size at which it shows: 10 repeats of smaller ensembles."""

import numpy as np
import pytest

from uq_tracking_papers.moukari import Committee, Training
from uq_tracking_papers.run import reproduce


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    return reproduce(["merci", "n-merci"], size="test", output=tmp_path_factory.mktemp("papers"))


def finding(section, part):
    (found,) = [one for one in section.findings if part in one.claim]
    return found


def value(section, item, method, quantity):
    (row,) = [row for row in section.rows if (row.item, row.method, row.quantity) == (item, method, quantity)]
    return row.ours


def test_merci_is_constant_under_scaling_while_other_scores_move(sections):
    assert finding(sections["merci"], "constant under scaling").holds
    assert finding(sections["merci"], "Coverage only grows").holds


def test_bagging_is_ahead_of_multi_epochs_on_the_toy(sections):
    assert finding(sections["merci"], "Bagging is ahead of Multi Epochs by every score").holds


def test_rows_are_told_beside_the_papers_numbers(sections):
    bagging = [row for row in sections["merci"].rows if row.item == "table 1" and row.method == "Bagging"]
    assert {row.quantity: row.paper_value for row in bagging}["merci"] == 53
    assert all(row.low <= row.ours <= row.high for row in bagging)
    printed = {row.method: row.paper_value for row in sections["n-merci"].rows if row.item == "figure 2"}
    assert printed.keys() == {"Multi Inits", "Bagging", "Monte Carlo Dropout", "Multi Epochs"}


def test_bounds_of_table_1_are_what_merci_says_they_are(sections):
    section = sections["merci"]
    oracle, constant = (value(section, "table 1", name, "merci") for name in ("Oracle", "Constant"))
    assert 0 < oracle < constant
    common = value(section, "table 3", "Constant", "merci")
    assert all(
        row.ours is not None and (row.method in ("Oracle", "Constant") or row.ours > 0)
        for row in section.rows
        if row.item == "table 3" and row.quantity == "merci"
    )
    assert common > value(section, "table 3", "Oracle", "merci")


def test_the_verdict_names_the_methods_that_are_no_better_than_a_constant(sections):
    section = sections["n-merci"]
    quantity = "n_merci, average over intervals"
    scores = {row.method: row.ours for row in section.rows if row.quantity == quantity}
    useless = finding(section, "Every method is better than a constant")
    assert useless.holds == (max(scores.values()) < 1)
    named = useless.evidence.rsplit("constant: ", 1)[1]
    assert all((name in named) == (score >= 1) for name, score in scores.items())


def test_networks_trained_at_once_are_those_trained_alone():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (3, 20)).astype(np.float32)
    y = (x**3 + 0.1 * rng.standard_normal((3, 20))).astype(np.float32)
    training = Training(epochs=200, dropout=0.0)
    together = Committee(3, training, np.random.default_rng(1))
    alone = [Committee(1, training, np.random.default_rng(1)) for _ in range(3)]
    for place, one in enumerate(alone):
        one.parameters = [array[place : place + 1].copy() for array in together.parameters]
    together.fit(x, y)
    for place, one in enumerate(alone):
        one.fit(x[place : place + 1], y[place : place + 1])
        np.testing.assert_allclose(together.predict(x[0])[place], one.predict(x[0])[0], rtol=1e-3, atol=1e-4)
        assert np.mean((one.predict(x[place])[0] - y[place]) ** 2) < 0.02


def test_gradients_are_those_of_half_the_mean_squared_error():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (1, 9)).astype(np.float32)
    y = rng.standard_normal((1, 9)).astype(np.float32)
    one = Committee(1, Training(hidden=4, dropout=0.0), rng)
    one.scale = np.ones((1, 1), np.float32)
    one.parameters = [array.astype(np.float64) for array in one.parameters]
    found = one._gradients(x, y)

    def loss():
        return 0.5 * np.mean((one.predict(x[0])[0] - y[0]) ** 2)

    for parameter, gradient in zip(one.parameters, found, strict=True):
        for place in np.ndindex(parameter.shape):
            before = parameter[place]
            parameter[place] = before + 1e-5
            above = loss()
            parameter[place] = before - 1e-5
            below = loss()
            parameter[place] = before
            assert gradient[place] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-6)
