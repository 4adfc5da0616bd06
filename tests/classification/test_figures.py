import numpy as np
import pytest
from matplotlib.colors import to_rgb

import uq_tracking as uq
from tests.figures import made, seen
from uq_tracking import plugins
from uq_tracking.errors import SettingsError, ShapeError
from uq_tracking.figures import style
from uq_tracking.figures.calibration import class_before_after
from uq_tracking.figures.maps import class_colors, class_map, entropy_of

from .made import pixels, samples, softmax

DRAWINGS = ["reliability", "sparsification", "risk_coverage"]


@pytest.fixture(scope="module")
def report():
    labels, z = samples(5000)
    return uq.evaluate(labels[:4000], probs=softmax(z[:4000]), calibration=(labels[4000:], softmax(z[4000:])))


def panels(figure):
    """The drawn arrays by the first word of their title."""
    return {
        ax.get_title().split(",")[0]: np.ma.asarray(ax.images[0].get_array())
        for ax in figure.axes
        if ax.images and ax.get_title()
    }


def test_bars_are_the_bins(report):
    figure = made.draw("reliability", report)
    bins = report.curves["reliability"].columns
    accuracy = [bar.get_height() for bar in figure.axes[0].containers[0]]
    np.testing.assert_array_equal(accuracy, bins["accuracy"])
    counts = [bar.get_height() for bar in figure.axes[1].containers[0]]
    np.testing.assert_array_equal(counts, bins["count"])
    text = seen.texts(figure)
    assert f"ECE {report.scores['ece']:#.3g}" in text
    assert "gap: overconfident" in text


def test_the_gaps_of_an_event_are_too_high_or_too_low():
    labels, z = samples(2000, 2)
    text = seen.texts(made.draw("reliability", uq.evaluate(labels, probs=softmax(z))))
    assert "gap: too high" in text
    assert "gap: too low" in text
    assert "confident" not in text.replace("Overconfident", "").replace("Underconfident", "")


def test_many_bins_state_the_sum_of_the_counts():
    labels, z = samples(2000)
    figure = made.draw("reliability", uq.evaluate(labels, probs=softmax(z), n_bins=40))
    assert "2,000 samples" in seen.texts(figure)


def test_lines_are_the_curves(report):
    ax = made.draw("sparsification", report).axes[0]
    curve = report.curves["sparsification_brier"].columns
    for label, column in (("by entropy", "model"), ("oracle", "oracle")):
        np.testing.assert_array_equal(seen.curve(ax, label), [curve["fraction"], curve[column]])
    risk = report.curves["risk_coverage"].columns
    np.testing.assert_array_equal(
        seen.curve(made.draw("risk_coverage", report).axes[0], "by confidence"),
        [risk["coverage"], risk["risk"]],
    )


@pytest.mark.slow
def test_titles_state_the_scores(report):
    for name, label, key in (
        ("sparsification", "AUSE", "ause_brier"),
        ("risk_coverage", "AURC", "aurc"),
        ("reliability", "ECE", "ece"),
    ):
        assert f"{label} {report.scores[key]:#.3g}" in seen.texts(made.draw(name, report))


@pytest.mark.slow
def test_bins_of_few_samples_are_pale_and_out_of_the_mce_shown():
    probs = np.repeat([0.1, 0.5, 0.9], [400, 20, 400])
    labels = np.concatenate([np.arange(400) < 60, np.zeros(20), np.arange(400) < 360]).astype(int)
    rare, full = (uq.evaluate(labels[keep], probs=probs[keep]) for keep in (slice(None), probs != 0.5))
    assert rare.scores["mce"] == pytest.approx(0.5)
    text = seen.texts(made.draw("reliability", rare)).replace("\n", " ")
    assert "MCE 0.0500 in bins of 50 samples or more" in text
    assert "pale: fewer than 50 samples" in text
    assert "fewer than" not in seen.texts(made.draw("reliability", full))
    assert "MCE 0.0500" in seen.texts(made.draw("reliability", full))


def test_before_and_after(report):
    text = seen.texts(class_before_after(report))
    after = report.recalibration["methods"]["temperature"]["scores"]
    assert f"before: ECE {report.scores['ece']:#.3g}, NLL {report.scores['nll']:#.3g}" in text
    assert f"after: ECE {after['ece']:#.3g}, NLL {after['nll']:#.3g}" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.parametrize(
    ("labels", "probs"),
    [([0], [[0.5, 0.5]]), ([0, 1], np.eye(2)), ([1, 0], np.eye(2)), ([0, 1, 2] * 5, np.full((15, 3), 1 / 3))],
)
def test_degenerate_reports_are_drawn(name, labels, probs):
    figure = made.draw(name, uq.evaluate(labels, probs=probs))
    assert seen.thumbnail(figure).std() > 5


def test_what_is_undefined_says_why():
    perfect = uq.evaluate([0, 1], probs=np.eye(2))
    assert "every Brier score is 0" in seen.texts(made.draw("sparsification", perfect)).replace("\n", " ")


@pytest.mark.slow
def test_letters_can_be_read_in_a_thumbnail(report):
    for name in DRAWINGS:
        figure = made.draw(name, report)
        seen.texts(figure)
        assert min(seen.text_heights(figure)) > 7


class TestMaps:
    def test_panels_hold_the_classes_the_errors_and_the_entropy(self):
        labels, probs = pixels(1)
        truth, p = labels[0].copy(), probs[0]
        truth[:4] = -1
        shown = panels(class_map(truth, p, title="case 0"))
        colors = class_colors(4)
        np.testing.assert_array_equal(shown["prediction"], colors[p.argmax(-1)])
        np.testing.assert_array_equal(shown["label"][4:], colors[truth[4:]])
        grey = to_rgb(style.NO_DATA)
        np.testing.assert_allclose(shown["label"][:4], np.broadcast_to(grey, (4, 32, 3)), atol=0.002)
        np.testing.assert_array_equal(np.ma.getmaskarray(shown["error"]), truth < 0)
        np.testing.assert_array_equal(shown["error"][4:], (truth != p.argmax(-1))[4:])
        expected = -(p * np.log(p)).sum(-1)
        np.testing.assert_allclose(shown["entropy"], expected, rtol=1e-12)

    def test_titles_and_legend(self):
        labels, probs = pixels(1)
        text = seen.texts(
            class_map(labels[0], probs[0], classes=["road", "car", "sky", "tree"], title="case 7")
        )
        wrong = 100 * (labels[0] != probs[0].argmax(-1)).mean()
        for part in ("case 7", "road", "tree", f"error, {wrong:.3g} % wrong", "entropy [nats]"):
            assert part in text
        assert "no label" not in text

    def test_a_picture_is_shown_first(self):
        labels, probs = pixels(1)
        shown = panels(class_map(labels[0], probs[0], image=np.full((12, 16, 3), 200, np.uint8)))
        assert next(iter(shown)) == "input"

    def test_many_classes_are_named_by_size(self):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(30), 30).reshape(30, 30)
        text = seen.texts(class_map(labels, rng.dirichlet(np.ones(30), (30, 30))))
        assert "and 21 more" in text
        assert len(np.unique(class_colors(49), axis=0)) == 49

    @pytest.mark.slow
    @pytest.mark.parametrize("shape", [(1, 1), (3, 200), (200, 3), (1200, 40)])
    def test_any_shape_is_drawn(self, shape):
        labels = np.zeros(shape, int)
        probs = np.full((*shape, 2), 0.5)
        assert seen.thumbnail(class_map(labels, probs, title="a rather long title of a case")).std() > 5

    def test_no_label_at_all_is_said(self):
        figure = class_map(np.full((8, 8), -1), np.full((8, 8, 2), 0.5))
        assert seen.texts(figure).count("no ground truth") == 2

    def test_zero_probabilities_have_no_entropy(self):
        np.testing.assert_array_equal(entropy_of(np.eye(3)[None]), np.zeros((1, 3)))

    @pytest.mark.parametrize(
        ("labels", "probs", "options", "error", "match"),
        [
            (np.zeros(4, int), np.ones((4, 2)), {}, ShapeError, "pass one case at a time"),
            (np.zeros((4, 4), int), np.ones((4, 5, 2)), {}, ShapeError, r"got \(4, 4\) and \(4, 5, 2\)"),
            (np.zeros((4, 4), int), np.ones((4, 4, 2)), {"image": np.ones(3)}, ShapeError, "image has shape"),
        ],
    )
    def test_refusals(self, labels, probs, options, error, match):
        with pytest.raises(error, match=match):
            class_map(labels, probs, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by_group", "by_members", "stability"])
@pytest.mark.pictures
def test_curves_on_demand_are_drawn_as_those_of_a_regression(name):
    labels, logits = samples(300)
    members = softmax(logits + np.random.default_rng(1).normal(size=(4, *logits.shape)))
    asked = [name] if name != "by_group" else None
    by = np.arange(300) % 3
    report = uq.evaluate(labels, probs=members, members_axis=0, by=by, curves=asked)
    spec = plugins.figures("classification")[name]
    assert not spec.lacks(report)
    side = "get_xlabel" if name == "by_group" else "get_ylabel"
    labels_drawn = [getattr(ax, side)().partition(" [")[0] for ax in spec.draw(report).axes]
    assert labels_drawn == [
        key.removeprefix(f"{name}_") for key in report.curves if key.startswith(f"{name}_")
    ]
    assert "nll" in labels_drawn


@pytest.mark.slow
def test_the_probabilities_of_each_class_are_drawn_with_the_worst_first():
    labels, z = samples(4000, 4, factor=1.0)
    probs = softmax(z + np.asarray([0, 0, 0.8, 0]))
    report = uq.evaluate(labels, probs=probs, groups=np.arange(4000) // 200, classes=["a", "b", "c", "d"])
    spec = plugins.figures("classification")["by_class"]
    assert spec.lacks(report) == ""
    figure = spec.draw(report)
    titles = [ax.get_title("left") for ax in figure.axes]
    assert titles[0].startswith("c: ")
    assert len(titles) == 4
    table = report.class_table.bins
    heights = [bar.get_height() for bar in figure.axes[0].containers[0]]
    np.testing.assert_array_equal(heights, table["observed"][2][table["count"][2] > 0])
    inside = (probs[:, 2] >= 0.3) & (probs[:, 2] < 0.4)
    assert table["count"][2, 3] == inside.sum()
    np.testing.assert_allclose(table["stated"][2, 3], probs[inside, 2].mean())
    np.testing.assert_allclose(table["observed"][2, 3], (labels[inside] == 2).mean())


def test_two_classes_have_no_figure_by_class():
    labels, z = samples(500, 2)
    report = uq.evaluate(labels, probs=softmax(z))
    assert "3 to 100 classes" in plugins.figures("classification")["by_class"].lacks(report)


def test_a_map_of_one_class_shows_where_it_is_found_missed_and_false():
    labels, probs = np.zeros((8, 8), dtype=int), np.full((8, 8, 3), [0.8, 0.1, 0.1])
    labels[0], labels[7, 7] = 1, -1
    probs[:2, :4] = [0.1, 0.7, 0.2]
    figure = class_map(labels, probs, classes=["a", "b", "c"], of="b")
    where, probability = [ax.images[0].get_array() for ax in figure.axes if ax.images][:2]
    colors = [
        tuple(np.rint(255 * np.asarray(where[pixel])).astype(int)) for pixel in ((0, 0), (0, 5), (1, 0))
    ]
    assert colors == [(166, 166, 166), (106, 0, 168), (227, 18, 11)]
    np.testing.assert_allclose(where[7, 7], 0.85)  # the grey of pixels without a label
    np.testing.assert_allclose(probability[:2, :4], 0.7)
    assert all(how in seen.texts(figure) for how in ("found", "missed", "false"))
    with pytest.raises(SettingsError, match="of='d' is not a class"):
        class_map(labels, probs, classes=["a", "b", "c"], of="d")
