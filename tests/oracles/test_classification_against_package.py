"""The package's classification scores against the literal transcriptions, on every data set."""

from __future__ import annotations

import numpy as np
import pytest

import uq_tracking as uq

from . import classification, datasets
from .literal import UndefinedScoreError


@pytest.mark.parametrize("name", datasets.CLASSIFICATION)
def test_scores_agree_with_the_literal_formulas(name):
    d = datasets.CLASSIFICATION[name]()
    report = uq.evaluate(d.labels, probs=d.probs)
    for key, score in classification.LITERAL.items():
        other = classification.OF_EVENTS if d.probs.shape[1] > 2 else classification.OF_CLASSES
        if key in other:
            assert key not in {**report.scores, **report.undefined}
            continue
        try:
            expected = score(d.labels.tolist(), d.probs.tolist())
        except UndefinedScoreError:
            assert key in report.undefined
            continue
        np.testing.assert_allclose(report.scores[key], expected, rtol=1e-9, atol=1e-12, err_msg=key)
