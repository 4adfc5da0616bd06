"""Columns are found by their usual names, or asked for."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from uq_tracking.errors import (
    EmptyInputError,
    FileFormatError,
    InputTypeError,
    InvalidValueError,
    SettingsError,
    ShapeError,
)
from uq_tracking.files import read_predictions
from uq_tracking.inputs import Predictions

from .made import ONE, npz


@pytest.mark.parametrize(
    "names",
    [
        ("y_true", "y_pred", "y_std"),
        ("label", "mu", "sigma"),
        ("Y", "Prediction", "UNCERTAINTY"),
        ("gt", "pred", "std"),
    ],
)
def test_usual_names_are_found(tmp_path, names):
    assert read_predictions(npz(tmp_path, **dict(zip(names, (ONE, ONE, ONE), strict=True)))).n == 2


def test_coordinate_y_does_not_compete_with_a_better_name(tmp_path):
    data = read_predictions(npz(tmp_path, x=ONE, y=ONE * 9, target=ONE, mean=ONE, std=ONE))
    assert_array_equal(data.truth, ONE)


@pytest.mark.parametrize("role", ["variance", "log_variance"])
def test_variances(tmp_path, role):
    variance = np.array([0.25, 4.0])
    values = variance if role == "variance" else np.log(variance)
    data = read_predictions(npz(tmp_path, target=ONE, mean=ONE, **{role: values}))
    assert_allclose(data.std, [0.5, 2.0], rtol=1e-14)


def test_std_wins_over_variance_when_both_are_there(tmp_path):
    assert_array_equal(read_predictions(npz(tmp_path, target=ONE, mean=ONE, std=ONE, var=ONE * 9)).std, ONE)


def test_interval_needs_its_level(tmp_path):
    path = npz(tmp_path, target=ONE, low=ONE - 1, high=ONE + 1)
    data = read_predictions(path, {"level": "0.9"})
    assert_array_equal(data.mean, ONE)
    assert_allclose(data.std, np.full(2, 1 / 1.6448536269514722), rtol=1e-14)
    with pytest.raises(SettingsError, match=r"level=0\.9 to the columns"):
        read_predictions(path, {"low": "low", "high": "high"})
    with pytest.raises(SettingsError, match="is not a number"):
        read_predictions(path, {"level": "ninety"})
    own = read_predictions(
        npz(tmp_path, target=ONE, low=ONE - 1, high=ONE + 1, mean=ONE * 5), {"level": "0.9"}
    )
    assert_array_equal(own.mean, ONE * 5)


NIXTLA = ["NHITS-lo-80", "NHITS-median", "NHITS-hi-80"]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["q10", "q50", "q90"], None),
        (["0.1", "0.5", "0.9"], None),
        (["y_q0.1", "y_q0.5", "y_q0.9"], None),
        (["Quantile_0.10", "Quantile_0.50", "Quantile_0.90"], None),
        (NIXTLA, None),
        (NIXTLA, {"quantiles": "NHITS-*"}),
        (["a", "b", "c"], {"0.5": "b", "0.1": "a", ".9": "c"}),
    ],
)
def test_columns_of_quantiles(write, names, columns):
    q = {"target": np.arange(5.0), names[0]: np.zeros(5), names[1]: np.ones(5), names[2]: np.full(5, 3.0)}
    path = write(q)
    data = read_predictions(path, columns)
    expected = Predictions.from_quantiles(q["target"], [q[name] for name in names], [0.1, 0.5, 0.9], axis=0)
    assert data.digest() == expected.digest()
    assert data.facts == expected.facts


def test_a_point_prediction_beside_quantiles_is_kept_and_files_are_joined(tmp_path):
    for name in ("1.npz", "2.npz"):
        npz(tmp_path, name, target=ONE, q05=ONE - 2, q95=ONE + 2, yhat=ONE * 5)
    data = read_predictions(tmp_path / "*.npz")
    assert_array_equal(data.mean, [5, 10, 5, 10])
    assert data.facts["levels"] == [0.05, 0.95]
    npz(tmp_path, "3.npz", target=ONE, q10=ONE - 2, q90=ONE + 2, yhat=ONE * 5)
    with pytest.raises(FileFormatError, match=r"3\.npz has other quantiles or classes than .*1\.npz"):
        read_predictions(tmp_path / "*.npz")


def test_quantiles_of_two_forecasts_are_not_told_apart(tmp_path):
    columns = {f"{model}-{side}-80": ONE for model in ("A", "B") for side in ("lo", "hi")}
    path = npz(tmp_path, target=ONE, **columns)
    with pytest.raises(SettingsError, match=r"A-hi-80.* could be quantiles of 2 forecasts.*quantiles=A\*"):
        read_predictions(path)
    with pytest.raises(SettingsError, match="choose one"):
        read_predictions(path, {"quantiles": "A-*", "0.1": "A-lo-80"})


@pytest.mark.parametrize("axis", [0, -1])
def test_samples_along_the_first_or_last_axis(tmp_path, axis):
    samples = np.random.default_rng(0).normal(size=(5, 2))
    data = read_predictions(npz(tmp_path, target=ONE, samples=np.moveaxis(samples, 0, axis)))
    assert_allclose(data.std, np.sqrt(1.2 * samples.var(axis=0, ddof=1)), rtol=1e-14)
    assert data.form.name == "draws"
    assert_array_equal(data.form.samples, samples)


def test_square_samples_are_not_guessed(tmp_path):
    with pytest.raises(SettingsError, match=r"first or the last axis; .*Predictions\.from_samples"):
        read_predictions(npz(tmp_path, target=ONE, samples=np.zeros((2, 2))))


def test_pattern_of_columns_as_members(tmp_path):
    table = pd.DataFrame(
        {"target": [0.0, 0.0], "mu_0": [1.0, 2.0], "mu_1": [3.0, 2.0], "s_0": 1.0, "s_1": 1.0}
    )
    table.to_csv(tmp_path / "p.csv", index=False)
    data = read_predictions(tmp_path / "p.csv", {"samples": "mu_*", "member_std": "s_*"})
    assert_allclose(data.std**2, [2.0, 1.0], rtol=1e-14)
    assert_allclose(data.form.epistemic, [1.0, 0.0], rtol=1e-14)


def test_missing_roles_name_the_columns_and_the_cure(tmp_path):
    path = npz(tmp_path, depth=ONE, depth_hat=ONE, std=ONE)
    with pytest.raises(
        SettingsError,
        match=r"no column looks like target, mean; the file has columns depth, depth_hat, std; say which is which, "
        r"for example --columns target=depth,mean=depth_hat",
    ):
        read_predictions(path)
    assert read_predictions(path, {"target": "depth", "mean": "depth_hat"}).n == 2


def test_proposals_leave_out_the_numbers_of_rows_and_hold_in_a_shell(tmp_path):
    pd.DataFrame({"actual": ONE, "forecast": ONE, "my sd": ONE}).to_csv(tmp_path / "p.csv")
    with pytest.raises(SettingsError, match="for example --columns 'std=my sd'"):
        read_predictions(tmp_path / "p.csv")


def test_ends_of_an_interval_are_never_proposed_as_mean_and_std(tmp_path):
    pd.DataFrame({"y": ONE, "lower": ONE - 1, "upper": ONE + 1}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(SettingsError, match=r"low and high need the probability between them; .*level=0\.9"):
        read_predictions(tmp_path / "p.csv")
    data = read_predictions(tmp_path / "p.csv", {"level": "0.9"})
    assert_allclose(data.facts["levels"], [0.05, 0.95])


def test_columns_that_differ_by_a_word_are_proposed_as_nothing_else(tmp_path):
    alike = {"prob_cat": ONE, "prob_dog": ONE, "other": ONE}
    pd.DataFrame({"label": ["cat", "dog"], **alike}).to_csv(tmp_path / "p.csv", index=False)
    told = (
        r"for example --columns mean=other,std=\.\.\. .*; of classes, --columns 'labels=NAME,probs=prob_\*'"
    )
    with pytest.raises(SettingsError, match=told):
        read_predictions(tmp_path / "p.csv")
    named = {"obs": ONE, "fc_mean": ONE, "fc_std": ONE}
    pd.DataFrame(named).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(SettingsError, match=r"--columns target=obs,mean=fc_mean,std=fc_std "):
        read_predictions(tmp_path / "p.csv")


def test_a_date_is_never_proposed_as_a_spread(tmp_path):
    other = {"year": ONE, "valid_time": ONE, "station": ONE, "lat": ONE}
    pd.DataFrame({**other, "actual": ONE, "forecast": ONE}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(SettingsError, match=r"for example --columns std=\.\.\. "):
        read_predictions(tmp_path / "p.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
@pytest.mark.parametrize(
    ("column", "told"),
    [("day", "holds dates"), ("site", r"holds text such as 'Ny-Ålesund' \(data row 1\)")],
)
def test_a_column_of_something_else_is_named(tmp_path, suffix, column, told):
    days, sites = pd.date_range("2020-01-01", periods=3), ["Ny-Ålesund", "Alert", "Barrow"]
    table = pd.DataFrame({"y": [1.0, 2.0, 3.0], "mu": [1.0, 2.0, 4.0], "day": days, "site": sites})
    path = tmp_path / f"table.{suffix}"
    if suffix == "csv":
        table.to_csv(path, index=False)
    elif suffix == "parquet":
        table.to_parquet(path)
    else:
        np.savez(path, **{**{name: table[name].to_numpy() for name in ("y", "mu", "day")}, "site": sites})
    with pytest.raises(InputTypeError, match=rf"column '{column}' \(for std\) {told}, not numbers"):
        read_predictions(path, columns={"target": "y", "mean": "mu", "std": column})


def test_the_cell_that_is_no_number_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("y_true,y_pred,y_std\n0.5,1,1\n,1,1\nn/a?,1,1\n1,1,1\n")
    with pytest.raises(
        InputTypeError, match=r"'y_true' \(for target\) holds text such as 'n/a\?' \(data row 3\)"
    ):
        read_predictions(tmp_path / "t.csv")


def test_a_table_without_rows_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("y_true,y_pred,y_std\n")
    with pytest.raises(EmptyInputError, match=r"t\.csv has column names but no rows"):
        read_predictions(tmp_path / "t.csv")


def test_two_candidates_are_not_guessed_between(tmp_path):
    with pytest.raises(SettingsError, match=r"mu and y_pred could each be the mean; .*--columns mean=mu"):
        read_predictions(npz(tmp_path, target=ONE, mu=ONE, y_pred=ONE, std=ONE))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sigma": "std"}, r"unknown role sigma; the roles are target, mean, std"),
        ({"std": "s"}, r"has no column 's' for std; it has target, mean, std, var"),
        (
            {"std": "std", "variance": "var"},
            r"columns name std and variance; state the uncertainty only once",
        ),
        ({"std": "std", "level": "0.9"}, r"level belongs to low and high"),
        ({"member_std": "std"}, r"member_std belongs to samples"),
        ({"samples": "member_*"}, r"has no column 'member_\*'"),
    ],
)
def test_columns_that_make_no_sense(tmp_path, columns, message):
    with pytest.raises(SettingsError, match=message):
        read_predictions(npz(tmp_path, target=ONE, mean=ONE, std=ONE, var=ONE), columns)


def test_column_named_mask_is_not_taken_unasked(tmp_path):
    path = npz(tmp_path, target=ONE, mean=ONE, std=ONE, mask=np.array([True, False]))
    assert read_predictions(path).n == 2
    assert read_predictions(path, {"mask": "mask"}).n == 1


def test_errors_of_the_values_name_the_file(tmp_path):
    with pytest.raises(InvalidValueError, match=r"p\.npz: y_std has 2 negative values"):
        read_predictions(npz(tmp_path, target=ONE, mean=ONE, std=-ONE))
    with pytest.raises(ShapeError, match=r"p\.npz: shapes differ"):
        read_predictions(npz(tmp_path, target=ONE, mean=ONE, std=np.ones(3)))


def test_options_reach_the_predictions(tmp_path):
    path = npz(tmp_path, target=ONE, mean=ONE, std=np.array([-1.0, 0.1]), groups=np.array([1, 2]))
    data = read_predictions(path, on_invalid="drop", std_floor=0.5, unit="m", groups=["a", "b"], columns=None)
    assert (data.n, data.unit, data.form.std_floor, list(data.groups)) == (1, "m", 0.5, ["a", "b"])
