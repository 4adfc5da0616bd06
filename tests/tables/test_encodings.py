"""Whatever is printed appears on terminals that lack some letters, with plain ones in their place."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest
from rich.console import Console

import uq_tracking as uq
from uq_tracking.cli import app
from uq_tracking.formatting import encodable

ENCODINGS = ("ascii", "latin-1", "cp1252")


@pytest.fixture(params=ENCODINGS)
def terminal(request):
    return io.TextIOWrapper(io.BytesIO(), encoding=request.param, write_through=True)


def printed(terminal):
    return terminal.buffer.getvalue().decode(terminal.encoding)


@pytest.fixture(scope="module")
def reports():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(2, 200)), rng.gamma(4, 0.25, (2, 200))
    y = mean + 1.7 * std * rng.normal(size=(2, 200)) + 0.5
    return {
        name: uq.evaluate(y[k], mean[k], std[k], unit="µm→ß") for k, name in enumerate(("Žižka", "b ≤ 2"))
    }


def test_reports_and_comparisons_are_printed(terminal, reports):
    found = uq.compare(reports, baseline="b ≤ 2")
    with redirect_stdout(terminal):
        for shown in (*reports.values(), found):
            print(shown, repr(shown))
        print(reports["Žižka"].verdict)
        Console().print(found)
    assert encodable("µm→ß", terminal.encoding) in printed(terminal)
    assert encodable("Žižka", terminal.encoding) in printed(terminal)


def test_what_is_written_keeps_its_letters(terminal, reports):
    with redirect_stdout(terminal):
        assert "µm→ß" in uq.compare(reports).to_text()


@pytest.mark.slow
def test_the_program_prints(terminal, reports, tmp_path):
    for name, scale in (("Žižka", 1.0), ("b", 2.0)):
        uq.log(
            [1.0, 2.0, 3.0],
            [1.1, 1.9, 3.3],
            [0.1, scale, 0.3],
            run=f"dir:{tmp_path}",
            method=name,
            unit="µm→",
        )
    for call in (
        ["compare", f"dir:{tmp_path}"],
        ["rescore", f"dir:{tmp_path}", "--alpha", "0.9"],
        ["backends"],
    ):
        with redirect_stdout(terminal), pytest.raises(SystemExit) as ended:
            app(call)
        assert ended.value.code == 0
    assert encodable("Žižka", terminal.encoding) in printed(terminal)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_plain_letters_keep_columns_aligned(encoding):
    text = "\N{MINUS SIGN}0.5 ± 0.1 µm… → ž"
    assert len(encodable(text, encoding)) == len(text)
