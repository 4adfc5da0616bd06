"""How much of the package one `uq.log` passes: a reader should be able to follow a call to its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST_FUNCTIONS, MOST_FILES, DEEPEST = 936, 92, 20
"""What a call may pass: lowered when it passes less, never raised without saying why.

Raised by ten functions when forms became classes: each answers what lists of names answered before.
Raised by two when TensorBoard came to show the verdict as text.
Raised by 134 functions and eight files when a verdict learnt to say where it is wrong and how many samples there are:
the map of this call is cut into tiles, whose statistics are tested.
Raised by five functions: the level of reports that are judged together, and the cure that a verdict names.
Raised by nine functions and one file, the figure of where a model is wrong, and by four, new gains among the scores.
Raised by twelve functions and one file: what a sending thread may read of a server's answers is limited, and a final
call reads back what the tracker has.
Raised by eighteen functions and two files: a run stores sums of losses over consecutive samples, to be compared by.
Raised by one function: a form adds the options that its arrays state, such as names of classes.
Raised by three functions and one file: a call may be given batches, or a table that an engine holds.
Raised by eighteen functions: this call logs the second run of a method, which has MLflow's view written again,
grouped; the third one passes over them.
Raised by one function: a run says how it was scored.
Raised by one function and one file: the samples that a verdict looks at, of which streams keep some.
Raised by two functions: the data set of a run may be named by the caller.
Raised by two functions: a unit is checked to be short, and one more that changes made side by side had not counted.
Raised by a function and a file each: the backends of DVCLive and Aim are asked for their runs, as the others are.
Raised by five functions: what is said of samples that are alike, and how they are grouped, is shared with classes.
Raised by three functions: tiles have a level of their own, and copies of rows are looked for.
Raised by six functions: standard deviations next to 0 are looked for, and the skewness of few errors.
Raised by one function: classes that were passed as a regression are looked for.
Raised by ten functions: maps that follow each other as frames of a video do are found, slow forecasts are
no covariate, and tails are named.
Raised by four functions: bars and bands of figures have one look, sums and pictures' names one place, and rows of
a table are told from maps.
Raised by twelve functions: areas of maps are looked at, as labels are, and errors that recur.
Raised by eleven functions: places of draws, fifths of an order, samples that stand for a million, how to shift.
Raised by five when a verdict came to look for filled predictions, rows of the training, groups that share dates, and
gross errors of one label.
Raised by eleven functions: tables, groups in sequence, periods along axes, hashes that show overlapping test sets.
Raised by five functions: what a form orders and sums is said once for exact statistics and sketches, and
errors on a grid, of rounded numbers, are taken off it.
Raised by eight functions: what a recalibration changed is printed, exchanged arguments are looked for, and each task
tests its ranking in its own way.
Raised by eleven functions: a call goes to its own server only, maps are compared with each other and looked through
for pixels that they share, and what many true values are names a distribution.
Raised by three functions: sizes that are wrong name a step, unless a bias explains them, also where none was tried.
Raised by two functions: a bias that no curve mends is corrected by fifths of the prediction, in standard deviations.
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    script = Path(__file__).with_name("log_path.py")
    folder = tmp_path_factory.mktemp("log_path")
    found = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, cwd=folder, check=False
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_call_was_a_whole_one(path):
    assert {"uq/crps", "uq_curve/reliability"} <= set(path["metrics"])
    assert any(name.endswith("log.py:log") for name in path["functions"])


@pytest.mark.slow
def test_functions(path):
    assert len(path["functions"]) <= MOST_FUNCTIONS


@pytest.mark.slow
def test_files(path):
    assert len(path["files"]) <= MOST_FILES, path["files"]


@pytest.mark.slow
def test_depth(path):
    assert len(path["deepest"]) <= DEEPEST, path["deepest"]
