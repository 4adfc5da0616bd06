"""The page in a real browser: sorting, toggling, hovering, and nothing that leaves the machine."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import uq_tracking as uq
from tests.comparison.conftest import N, report_of, samples
from uq_tracking.formatting import format_score, typographic

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def address(tmp_path_factory, folder, seeds):
    """A page with maps, seeds, a baseline and a name that is a script."""
    truth, mean, std = samples()
    own = {**seeds, NASTY: uq.evaluate(truth, mean, 2 * std), "third": uq.evaluate(truth, mean, 0 * std + 1)}
    path = tmp_path_factory.mktemp("page") / "uq comparison.html"
    uq.compare(f"dir:{folder}", own, baseline="bad").to_html(path)
    assert N == 400
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The page, opened; what it said and asked for is checked afterwards."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    opened = context.new_page()
    said, asked = [], []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(address)
    yield opened
    context.close()
    assert said == []
    assert {url for url in asked if not url.startswith("data:")} == {address}


def names(page):
    return page.locator("tr.method:not([hidden]) .label").all_inner_texts()


def column(page, key):
    """Ranks as shown, from top to bottom."""
    place = page.locator("#scores-table thead th").evaluate_all(
        "(heads, key) => heads.findIndex((head) => head.dataset.key === key)", key
    )
    cells = page.locator(f"tr.method td:nth-child({place + 1})")
    return [cell.inner_text() for cell in cells.all()]


def losses(page, key):
    place = page.locator("#scores-table thead th").evaluate_all(
        "(heads, key) => heads.findIndex((head) => head.dataset.key === key)", key
    )
    cells = page.locator(f"tr.method td:nth-child({place + 1})")
    return [
        float(value)
        for value in cells.evaluate_all("(cells) => cells.map((cell) => cell.dataset.sort ?? 'NaN')")
    ]


def lines(page, curve="calibration"):
    return page.locator(f'[data-curve="{curve}"] .run-line').count()


@pytest.mark.slow
def test_a_name_that_is_a_script_is_text(page):
    assert NASTY in names(page)
    assert NASTY in page.locator(".chip").all_inner_texts()


class TestSorting:
    @pytest.mark.slow
    def test_rows_start_in_the_order_of_the_first_scoring_rule(self, page):
        found = losses(page, "nll")  # those of the folder have targets of their own, and come first
        assert found == [*sorted(found[:2]), *sorted(found[2:])]
        assert page.locator("th[aria-sort]").get_attribute("data-key") == "nll"

    def test_a_click_sorts_best_first_and_another_one_worst_first(self, page):
        header = page.locator('#scores-table th[data-key="crps"]')
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == "ascending"
        found = losses(page, "crps")
        assert found == sorted(found)
        assert "★" in column(page, "crps")[0]
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == "descending"
        assert losses(page, "crps") == found[::-1]

    @pytest.mark.slow
    def test_only_one_column_is_the_sorted_one(self, page):
        for key in ("crps", "nll"):
            page.locator(f'th[data-key="{key}"] button').click()
        assert page.locator("th[aria-sort]").count() == 1

    @pytest.mark.slow
    def test_names_sort_too(self, page):
        page.locator("th.name .sort").first.click()
        found = [name.lower() for name in names(page)]
        assert found[-1] == "third"
        assert found.index("as good") < found.index("bad") < found.index("good")

    @pytest.mark.slow
    def test_methods_without_the_metric_stay_last(self, page):
        page.locator('button[data-family="Ranking of errors"]').click()
        header = page.locator('#scores-table th[data-key="spearman"] button')
        for _ in range(2):
            header.click()
            assert names(page)[-1] == "third"

    @pytest.mark.slow
    def test_runs_stay_below_their_method(self, page):
        page.locator("#single-runs").check()
        page.locator('th[data-key="nll"] button').click()
        parents = page.locator("#scores-table tbody:last-child tr").evaluate_all(
            "(rows) => rows.map((row) => row.dataset.method ?? row.dataset.parent)"
        )
        assert len(dict.fromkeys(parents)) == len(
            [a for a, b in zip(parents, [None, *parents], strict=False) if a != b]
        )

    @pytest.mark.slow
    def test_the_keyboard_sorts(self, page):
        page.locator('th[data-key="crps"] button').focus()
        page.keyboard.press("Enter")
        assert page.locator('#scores-table th[data-key="crps"]').get_attribute("aria-sort") == "ascending"


class TestToggling:
    def test_a_chip_takes_a_method_out_of_curves_maps_and_differences(self, page):
        before, maps = lines(page), page.locator(".card:not([hidden])").count()
        page.locator(".chip", has_text="large").click()
        assert lines(page) == before - 2
        assert page.locator(".card:not([hidden])").count() < maps
        assert page.locator("tr.method", has_text="large").is_hidden()
        assert page.locator('[data-difference="nll"] .row', has_text="large").count() == 0
        page.locator(".chip", has_text="large").click()
        assert lines(page) == before

    @pytest.mark.slow
    def test_the_box_in_the_table_does_the_same(self, page):
        before = lines(page)
        page.locator("tr.method", has_text="third").locator("input").uncheck()
        assert lines(page) == before - 1
        assert page.locator(".chip", has_text="third").get_attribute("aria-pressed") == "false"

    @pytest.mark.slow
    def test_a_single_run_is_taken_out_of_the_curves(self, page):
        before = lines(page)
        page.locator("#single-runs").check()
        page.locator("tr.run:visible input").first.uncheck()
        assert lines(page) == before - 1

    @pytest.mark.slow
    def test_all_at_once(self, page):
        before = lines(page)
        page.locator("#toggle-all").click()
        assert lines(page) == 0
        page.locator("#toggle-all").click()
        assert lines(page) == before


class TestMetrics:
    def test_families_choose_the_columns(self, page):
        visible = page.locator("#scores-table thead th:visible")
        first = visible.count()
        page.locator('[data-family="all"]').first.click()
        assert visible.count() > 40
        page.locator('button[data-family="Calibration"]').click()
        assert page.locator('#scores-table th[data-key="ence"]').is_visible()
        assert not page.locator('#scores-table th[data-key="crps"]').is_visible()
        page.locator('button[data-family="headline"]').click()
        assert visible.count() == first

    @pytest.mark.slow
    def test_a_heading_explains_its_metric(self, page):
        heading = page.locator('th[data-key="n_merci"] button')
        heading.scroll_into_view_if_needed()
        heading.focus()  # a scroll, which ends a little later, hides the tip
        page.wait_for_timeout(400)
        heading.hover()
        tip = page.locator("#tip")
        tip.wait_for(state="visible", timeout=5000)
        assert "oracle" in tip.inner_text()
        assert "better: lower" in tip.inner_text()
        page.keyboard.press("Escape")
        assert not tip.is_visible()

    @pytest.mark.slow
    def test_differences_follow_the_columns(self, page):
        page.locator('button[data-family="Ranking of errors"]').click()
        keys = page.locator("[data-difference]").evaluate_all(
            "(cards) => cards.map((card) => card.dataset.difference)"
        )
        assert set(keys) == {"ause_rmse", "ause_mae", "aurg_rmse", "merci", "n_merci", "spearman"}


@pytest.mark.slow
def test_pointing_at_a_curve_shows_every_run(page):
    plot = page.locator('[data-curve="calibration"] svg')
    plot.scroll_into_view_if_needed()
    page.evaluate("() => new Promise((done) => setTimeout(done, 200))")  # the scroll's event hides the tip
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator("#tip")
    tip.wait_for(state="visible", timeout=5000)
    assert tip.locator(".value-row").count() == len(names(page))
    assert " to " in tip.locator(".value-row", has_text="as good").inner_text()
    assert NASTY in tip.inner_text()
    page.mouse.move(box["x"] - 30, box["y"] - 30)
    assert not tip.is_visible()


def test_curves_are_within_their_frames(page):
    sizes = page.locator("#curve-grid svg").evaluate_all(
        "(all) => all.map((svg) => svg.getBoundingClientRect().width)"
    )
    assert sizes
    assert min(sizes) > 200
    values = page.locator("#curve-grid path").evaluate_all(
        "(all) => all.map((path) => path.getAttribute('d'))"
    )
    assert not [value for value in values if "NaN" in value or "Infinity" in value]


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_the_page_never_scrolls_sideways(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_policy_stops_requests_of_injected_elements(browser, address):
    """What slips in nevertheless can reach nobody."""
    opened = browser.new_page()
    opened.goto(address)
    refused = opened.evaluate(
        """async () => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (event) => seen.push(event.violatedDirective));
          await fetch("http://127.0.0.1:9/x").catch(() => {});
          const image = new Image();
          image.src = "http://127.0.0.1:9/y.png";
          const script = document.createElement("script");
          script.textContent = "window.injected = true";
          document.body.append(image, script);
          await new Promise((done) => setTimeout(done, 200));
          return [seen.sort(), window.injected === undefined];
        }"""
    )
    assert refused == [["connect-src", "img-src", "script-src-elem"], True]
    opened.close()


@pytest.mark.slow
def test_many_methods_open_with_the_first_twelve(browser, reports, tmp_path):
    many = {f"method {k:02}": reports["informed"] for k in range(30)}
    uq.compare(many).to_html(tmp_path / "many.html")
    opened = browser.new_page()
    opened.goto((tmp_path / "many.html").as_uri())
    assert lines(opened) == 12
    assert opened.locator("#toggle-all").inner_text() == "show all 30"
    opened.locator("#toggle-all").click()
    assert lines(opened) == 30
    opened.close()


class TestRecalibrated:
    @pytest.fixture
    def opened(self, browser, tmp_path):
        truth, mean, std = samples()
        both = {
            name: uq.evaluate(truth, mean, s, calibration=True) for name, s in (("a", std), ("b", std / 3))
        }
        uq.compare(both).to_html(tmp_path / "page.html")
        opened = browser.new_page()
        opened.goto((tmp_path / "page.html").as_uri())
        yield opened
        opened.close()

    @pytest.mark.slow
    def test_scores_after_recalibration_stand_below_their_method(self, opened):
        rows = opened.locator("#scores-table tbody:last-child tr")
        assert (
            rows.evaluate_all("(rows) => rows.map((row) => row.className)")
            == ["method", "recalibrated", "recalibrated"] * 2
        )
        opened.locator("th.name .sort").first.click()
        parents = rows.evaluate_all("(rows) => rows.map((row) => row.dataset.method ?? row.dataset.parent)")
        assert parents[0] == parents[1] == parents[2] != parents[3] == parents[4] == parents[5]

    def test_of_a_cross_fit_both_sides_are_of_the_same_half(self, opened):
        names = opened.locator("tr.recalibrated th").all_inner_texts()
        assert [name.split() for name in names[:2]] == [["before", "half"], ["std_scaling", "half"]]
        scores = opened.locator("tr.recalibrated td[data-key=rmse] .value").all_inner_texts()
        assert (
            scores[0] == scores[1] != opened.locator("tr.method td[data-key=rmse] .value").first.inner_text()
        )
        assert "Half: of the half of the samples" in opened.locator("#scores .legend").inner_text()

    def test_they_can_be_hidden_and_go_with_their_method(self, opened):
        shown = opened.locator("tr.recalibrated:visible")
        assert shown.count() == 4
        opened.locator(".chip").first.click()
        assert shown.count() == 2
        opened.locator("#recalibrated").uncheck()
        assert shown.count() == 0


class TestFiles:
    """What the buttons of a picture save."""

    def saved(self, page, place, label):
        with page.expect_download() as download:
            page.locator(place).get_by_role("button", name=label, exact=True).click()
        return Path(download.value.path()).read_bytes()

    @pytest.fixture
    def opened(self, browser, address):
        opened = browser.new_page()
        opened.goto(address)
        yield opened
        opened.close()

    def test_the_scores_are_those_of_to_csv(self, opened):
        rows = list(csv.DictReader(io.StringIO(self.saved(opened, ".toolbar", "CSV").decode())))
        assert {row["method"] for row in rows} == set(names(opened))
        assert all(float(row["value"]) for row in rows if row["metric"] == "rmse")

    def test_a_curve_as_numbers(self, opened):
        content = self.saved(opened, '[data-curve="calibration"]', "CSV").decode()
        rows = list(csv.DictReader(io.StringIO(content)))
        assert {row["method"] for row in rows} == set(names(opened))
        assert all(0 <= float(row["Predicted quantile level"]) <= 1 for row in rows)

    @pytest.mark.slow
    @pytest.mark.parametrize("place", ['[data-curve="calibration"]', '[data-difference="nll"]', "#scatter"])
    def test_a_picture_stands_alone(self, opened, browser, place, tmp_path):
        content = self.saved(opened, place, "SVG").decode()
        assert "class=" not in content
        assert "<script" not in content
        (tmp_path / "picture.svg").write_text(content)
        alone = browser.new_page()
        alone.goto((tmp_path / "picture.svg").as_uri())
        texts = alone.locator("text").all_text_contents()
        assert any("good" in text for text in texts)
        outside = alone.evaluate(
            """() => {
              const all = document.documentElement.getBoundingClientRect();
              return Array.from(document.querySelectorAll("text")).filter((text) => {
                const box = text.getBoundingClientRect();
                return box.left < all.left - 1 || box.right > all.right + 1 || box.bottom > all.bottom + 1;
              }).map((text) => text.textContent);
            }"""
        )
        assert outside == []
        alone.close()

    @pytest.mark.slow
    def test_a_picture_as_pixels(self, opened):
        content = self.saved(opened, '[data-curve="calibration"]', "PNG")
        height, width, _ = imread(io.BytesIO(content)).shape
        assert width == 840
        assert height > 600


VALUES = [12345.678, 1.5e-7, 0.99996, 99999.5, 1e-4, 123456789.0, 0.5, 1000.0, 9.9996, 3e-5, 2.0]


@pytest.mark.slow
def test_the_script_formats_numbers_as_the_package_does(browser, tmp_path):
    """Tips of differences to zero, each of which has a row of its own."""
    scores = {"zero": 0.0, **{f"m{k}": value for k, value in enumerate(VALUES)}}
    methods = {name: report_of({"rmse": value, "ause_rmse": -value}) for name, value in scores.items()}
    uq.compare(methods, metrics=["rmse", "ause_rmse"], baseline="zero").to_html(tmp_path / "page.html")
    opened = browser.new_page()
    opened.goto((tmp_path / "page.html").as_uri())
    for key, sign in (("rmse", 1), ("ause_rmse", -1)):
        rows = opened.locator(f'[data-difference="{key}"] [aria-label="y-axis tick label"] text')
        assert rows.count() == len(VALUES)
        for row in rows.all():
            box, value = row.bounding_box(), scores[row.text_content()]
            row.dispatch_event("pointermove", {"clientX": box["x"], "clientY": box["y"] + 6, "bubbles": True})
            shown = opened.locator("#tip div").first.inner_text()
            assert shown.split(" (")[0] == typographic(format_score(sign * value))
    opened.close()


@pytest.mark.slow
def test_bands_of_runs_with_groups_are_drawn(browser, tmp_path):
    truth, mean, std = samples()
    grouped = uq.evaluate(truth, mean, std, groups=np.arange(N) // 20, intervals=True)
    uq.compare({"a": grouped, "b": uq.evaluate(truth, mean, 2 * std)}).to_html(tmp_path / "page.html")
    opened = browser.new_page()
    opened.goto((tmp_path / "page.html").as_uri())
    assert opened.locator('[data-curve="reliability"] .band').count() == 1
    opened.close()


@pytest.mark.slow
def test_where_calibrated_runs_lie_is_a_band_of_each_set_of_positions(browser, reports, tmp_path):
    uq.compare(reports).to_html(tmp_path / "page.html")
    opened = browser.new_page()
    opened.goto((tmp_path / "page.html").as_uri())
    bands = {
        name: f'[data-curve="{name}"] .chance path'
        for name in ("calibration", "pit_histogram", "reliability")
    }
    assert [opened.locator(band).count() for band in bands.values()] == [1, 1, 3]  # shuffled has informed's
    opened.locator(".chip", has_text="overconfident").click()
    assert opened.locator(bands["reliability"]).count() == 2
    opened.close()


class TestVerdict:
    """What ten seconds are enough for."""

    @pytest.fixture
    def rows(self, browser, reports, tmp_path):
        uq.compare(reports).to_html(tmp_path / "page.html")
        opened = browser.new_page()
        opened.goto((tmp_path / "page.html").as_uri())
        yield {row.locator("th").inner_text(): row for row in opened.locator("#verdicts tbody tr").all()}
        opened.close()

    def test_the_overconfident_method_is_named_with_its_factor(self, rows, reports):
        scale = reports["overconfident"].verdict.scale.value
        said = rows["overconfident"].locator(".over").inner_text()
        assert said == f"{scale:.2f} \N{MULTIPLICATION SIGN} overconfident"
        # its predictions are truth plus noise, so they vary too much, which is no fault of its standard deviations
        assert rows["informed"].locator(".over, .under").count() == 0

    def test_bars_are_as_long_as_errors_are_found(self, rows, reports):
        bars = {
            name: float(row.locator(".ranking .fill").get_attribute("width")) for name, row in rows.items()
        }
        for name in ("informed", "constant", "shuffled"):
            assert bars[name] == max(round(100 * reports[name].verdict.recovered), 0)
        stars = [name for name, row in rows.items() if "★" in row.inner_text()]
        assert set(stars) <= {"informed", "overconfident"}


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1300])
def test_no_text_leaves_its_picture_and_no_name_covers_another(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    outside = page.locator("#scatter svg, #curve-grid svg").evaluate_all(
        """(all) => all.flatMap((svg) => {
          const card = svg.parentElement.getBoundingClientRect();
          return Array.from(svg.querySelectorAll("text")).filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < card.left - 1 || box.right > card.right + 1 || box.bottom > card.bottom + 1;
          }).map((text) => text.textContent);
        })"""
    )
    assert outside == []
    boxes = page.locator("#scatter text.name").evaluate_all(
        "(all) => all.map((text) => text.getBoundingClientRect()).map((b) => [b.left, b.top, b.right, b.bottom])"
    )
    for k, one in enumerate(boxes):
        for other in boxes[k + 1 :]:
            across = min(one[2], other[2]) - max(one[0], other[0])
            down = min(one[3], other[3]) - max(one[1], other[1])
            assert across <= 0 or down <= 3


@pytest.mark.slow
def test_titles_of_curves_are_unique(page):
    titles = page.locator("#curve-grid h3").all_inner_texts()
    assert len(set(titles)) == len(titles)


class TestLongNames:
    """Forty methods, whose names are long: what a laptop shows of them."""

    @pytest.fixture(scope="class")
    @classmethod
    def address(cls, tmp_path_factory):
        truth, mean, std = samples()
        group = np.arange(N) % 20
        names = [f"deep ensemble of {k} members with dropout, seed {k}" for k in range(39)] + ["A" * 120]
        made = {
            name: uq.evaluate(truth, mean, std * (1 + 0.02 * k), unit="m", groups=group)
            for k, name in enumerate(names[:2] + names[-1:])
        }
        many = {name: made.get(name, made[names[0]]) for name in names}
        path = tmp_path_factory.mktemp("long") / "page.html"
        uq.compare(many).to_html(path)
        return path.as_uri()

    @pytest.fixture
    def opened(self, browser, address):
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.goto(address)
        yield opened
        opened.close()

    @pytest.mark.slow
    def test_a_score_that_ranks_errors_shows_without_scrolling(self, opened):
        edge = opened.locator("#scores-scroll").evaluate("(box) => box.getBoundingClientRect().right")
        shown = opened.locator('#scores-table th[data-key="ause_rmse"]')
        assert shown.evaluate("(head) => head.getBoundingClientRect().right") <= edge

    @pytest.mark.slow
    def test_the_rows_of_methods_above_are_whole(self, opened):
        edge = opened.locator(".chips").evaluate("(box) => box.getBoundingClientRect().bottom")
        ends = opened.locator(".chip").evaluate_all(
            "(chips) => chips.map((chip) => [chip.getBoundingClientRect().top, chip.getBoundingClientRect().bottom])"
        )
        assert max(bottom for _, bottom in ends) > edge
        assert not [top for top, bottom in ends if top < edge - 1 and bottom > edge + 1]

    @pytest.mark.slow
    def test_every_column_of_the_runs_shows(self, opened):
        section = opened.locator("#runs .scroll")
        assert section.evaluate("(box) => box.scrollWidth <= box.clientWidth")
        assert opened.locator("#runs td").first.get_attribute("title").startswith("deep ensemble of")

    def test_names_in_tables_are_not_cut_where_two_lines_hold_them(self, opened):
        assert "deep ensemble of 0 members with dropout, seed 0" in names(opened)


@pytest.mark.slow
def test_no_name_covers_that_of_a_bound(browser, tmp_path):
    """A constant uncertainty lies on its bound, at the left border where the bound's name stands."""
    truth, mean, std = samples()
    made = {
        "constant std at the left": uq.evaluate(truth, mean, 0 * std + 1),
        "informed": uq.evaluate(truth, mean + 3, std),
    }
    uq.compare(made).to_html(tmp_path / "page.html")
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.goto((tmp_path / "page.html").as_uri())
    boxes = opened.locator("#scatter-plot text:not(.label)").evaluate_all(
        "(texts) => texts.map((text) => { const box = text.getBoundingClientRect();"
        " return [text.textContent, box.left, box.right, box.top, box.bottom]; })"
    )
    opened.close()
    (bound,) = [box for box in boxes if box[0] == "constant"]
    over = [
        box[0]
        for box in boxes
        if box is not bound
        and min(box[2], bound[2]) > max(box[1], bound[1])
        and min(box[4], bound[4]) - max(box[3], bound[3]) > 3
    ]
    assert over == []
