import io
import subprocess
import sys
import threading

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from PIL import Image

import uq_tracking as uq
from uq_tracking import figures
from uq_tracking.figures import style
from uq_tracking.figures.calibration import before_after
from uq_tracking.figures.maps import uncertainty_map
from uq_tracking.figures.style import readable, text_width
from uq_tracking.formatting import format_factors
from uq_tracking.tables.report import report_table

from . import made, seen

NAMES = [
    "reliability",
    "calibration",
    "coverage",
    "pit_histogram",
    "sparsification",
    "n_merci_by_alpha",
    "error_vs_std",
]


@pytest.fixture(scope="module")
def report():
    return made.scored("heavy", n=1000, unit="m")


def all_pixels(report):
    values = np.arange(1200.0).reshape(30, 40)
    drawn = [made.draw(name, report) for name in NAMES]
    drawn.append(before_after(made.scored("heavy", n=1000, unit="m", calibration=True)))
    drawn.append(uncertainty_map(values, values + 1, values * 0 + 2, scale=1.0, unit="m", title="a case"))
    drawn.append(made.draw("reliability", made.report({})))
    return [figures.to_rgb(figure) for figure in drawn]


@pytest.fixture(scope="module")
def expected(report):
    return all_pixels(report)


@pytest.mark.slow
def test_png_bytes_are_deterministic(report):
    for name in NAMES:
        one, other = (figures.to_png(made.draw(name, report), dpi=60) for _ in range(2))
        assert one == other


def test_png_has_no_metadata(report):
    picture = Image.open(io.BytesIO(figures.to_png(made.draw("reliability", report))))
    assert set(picture.info) <= {"dpi"}


@pytest.mark.slow
def test_png_and_pixels_agree(report):
    figure = made.draw("sparsification", report)
    png = Image.open(io.BytesIO(figures.to_png(figure))).convert("RGB")
    np.testing.assert_array_equal(np.asarray(png), figures.to_rgb(figure))


@pytest.mark.slow
def test_pixels_are_rgb_bytes_at_the_wanted_size(report):
    figure = made.draw("sparsification", report)
    pixels = figures.to_rgb(figure, dpi=60)
    assert (pixels.shape, pixels.dtype) == ((300, 300, 3), np.uint8)
    assert figure.get_dpi() == style.DPI
    assert Image.open(io.BytesIO(figures.to_png(figure, dpi=60))).size == (300, 300)


@pytest.mark.parametrize("theme", ["dark_background", "bmh"])
@pytest.mark.slow
def test_the_users_own_settings_do_not_change_a_pixel(report, expected, theme):
    with mpl.rc_context():
        matplotlib.style.use(theme)
        mpl.rcParams.update(
            {"text.usetex": True, "font.size": 20, "axes.grid": True, "xtick.top": True, "lines.marker": "x",
             "xtick.minor.visible": True, "image.cmap": "jet", "savefig.bbox": "tight"}
        )  # fmt: skip
        changed = all_pixels(report)
    for before, after in zip(expected, changed, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.slow
def test_settings_of_matplotlib_stay_as_they_were(report):
    before = dict(mpl.rcParams)
    all_pixels(report)
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_threads_draw_what_one_thread_draws(report, expected):
    found = {}

    def work(index):
        found[index] = all_pixels(report)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(2):
        for before, after in zip(expected, found[index], strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.slow
def test_pyplot_is_not_imported():
    code = (
        "import sys, numpy as np\n"
        "from uq_tracking.figures import maps, to_png\n"
        "to_png(maps.uncertainty_map(*[np.ones((3, 4))] * 3, scale=1.0))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.slow
def test_user_text_is_drawn_as_written():
    report = made.scored("calibrated", n=500, unit="$_m^2", method="deep_ens $x\n v2")
    for name in NAMES:
        assert "deep_ens $x v2" in seen.texts(made.draw(name, report))
    assert "[$_m^2]" in seen.texts(made.draw("reliability", report))


def test_letters_the_font_lacks_become_boxes():
    report = made.scored("calibrated", n=500, method="\u6e29\u5ea6 a")
    assert "Reliability: \u25a1\u25a1 a" in seen.texts(made.draw("reliability", report))


def test_long_names_are_cut():
    figure = made.draw("reliability", made.scored("calibrated", n=500, method="W" * 200))
    (title,) = [text for text in seen.texts(figure).split("\n") if text.startswith("WW")]
    assert title.strip("W") == "…"
    assert title.endswith("W")
    assert 0.9 < text_width(title, style.TEXT, "bold") / (72 * figure.get_figwidth()) < 1


@pytest.mark.parametrize("name", ["reliability", "sparsification"])
def test_names_that_differ_at_their_end_differ_in_the_title(name):
    names = [f"Random-forest ensemble of {count} trees, min leaf 4, seed {count}" for count in (150, 250)]
    reports = [made.scored("calibrated", n=500, method=name) for name in names]
    titles = [" ".join(seen.texts(made.draw(name, report)).split("\n")) for report in reports]
    for method, title in zip(names, titles, strict=True):
        assert method in title


def test_a_name_a_little_too_long_is_smaller():
    report = made.scored("calibrated", n=500, method="deep ensemble of 15 nets")
    figure = made.draw("sparsification", report)
    (title,) = [
        text for text in figure.texts if text.get_text() == "Sparsification, RMSE: deep ensemble of 15 nets"
    ]
    assert style.TEXT <= title.get_fontsize() < style.TITLE


@pytest.mark.slow
def test_ends_of_the_verdict_differ_as_in_its_words():
    report = made.scored("overconfident", n=200_000)
    _, low, high = format_factors(*(getattr(report.verdict.scale, end) for end in ("value", "low", "high")))
    assert len(low) > len("2.19")
    assert f"({low}\N{EN DASH}{high})" in seen.texts(made.draw("reliability", report))
    assert f"({low} to {high})" in report.verdict.text


@pytest.mark.slow
def test_ends_of_an_interval_are_zero_but_for_rounding():
    """The unit is far below 1e-12: scores in it are not taken for 0."""
    rng = np.random.default_rng(0)
    report = uq.evaluate(
        1e-14 * rng.normal(size=2000), np.zeros(2000), np.full(2000, 1e-14), groups=np.arange(2000) % 20
    )
    assert 0 < abs(report.intervals["aurg_rmse"][0]) < 1e-12
    assert "AURG 0 (0 to 0)" in seen.texts(made.draw("sparsification", report))
    assert report.shown("rmse") == (report.scores["rmse"], report.intervals["rmse"])
    (row,) = [row for row in report_table(report).rows if row.name == "aurg_rmse"]
    assert (row["value"].text, row["interval"].text) == ("0", "[0, 0]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0123456, "0.0123"),
        (-12.3456, "\N{MINUS SIGN}12.3"),
        (999.7, "1,000"),
        (1234567.0, "1,234,567"),
        (1.5e-7, "1.5e\N{MINUS SIGN}7"),
        (2e9, "2e9"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_readable(value, text):
    assert readable(value) == text


def test_padded_numbers_keep_their_zeros():
    assert [readable(x, padded=True) for x in (0.7, 1.0, 12.0, 100.0)] == [
        "0.700",
        "1.00",
        "12.0",
        "100",
    ]


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0, 0.25, 0.5], ["0", "0.25", "0.5"]),
        ([273.15, 273.1501, 273.1502], ["273.15", "273.1501", "273.1502"]),
        ([0, 500_000, 1_000_000], ["0", "5e5", "1e6"]),
        ([1000, 1002.5, 1005], ["1,000", "1,002.5", "1,005"]),
        ([4.0], ["4"]),
    ],
)
def test_ticks_can_be_distinguishable(ticks, texts):
    assert style.TickNumbers().format_ticks(ticks) == texts


@pytest.mark.parametrize(
    "limits",
    [
        (1, 1.1),
        (1.3, 4.4),
        (1.21, 1.97),
        (0.0107, 0.0149),
        (1, 1.0001),
        (1, 9),
        (0.3, 40),
        (1e-6, 1e9),
        (1e-300, 1e300),
    ],
)
def test_log_ticks_are_few_and_inside(limits):
    ticks = style.decades(*limits)
    assert 2 <= len(ticks) <= 8
    assert (np.diff(ticks) > 0).all()
    assert (ticks >= limits[0] * 0.999).all()
    assert (ticks <= limits[1] * 1.001).all()
