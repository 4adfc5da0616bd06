"""The page of evidence: what is said of data whose truth is known, and how often it is right."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.scenarios import classification, regression
from tests.scenarios.regression import Scenario
from tests.scenarios.test_scenarios import SCENARIOS, count, most_wrong

SETS, FEW = 40, 10
"""Sets of a scenario, and of a slow one."""

HEAD = f"""# What the verdict says of known truths

Written by `docs/generate.py` from `tests/scenarios/regression.py` and `classification.py`, the contract of the verdict: whoever
changes a word of the sentence changes it there, and the tests run it.

Every row is a way to make data whose truth is known. *Right words* are the values of `verdict.calibration` that are right for
it; "too few" is "not enough data", where the data cannot tell. A text in quotes must stand in the sentence. The next columns
count in how many sets each statement was right: the word, the ranking, the bias, and the texts (a wrong word brings wrong
texts, which count once). Each may be wrong in 5 % of sets. `make test` counts 40 sets, and lets at most
{most_wrong(40)} be wrong, which a statement that is wrong in exactly 5 % exceeds once in twenty times; if more are, 400 sets
decide, of which at most {most_wrong(400)} may be wrong. `make simulate` begins with 400 and goes on to 2000
({most_wrong(2000)}). The last column is what is said of the first set.
[How certain a report is](intervals.md#the-verdict) explains the tests behind it.
"""
STATEMENTS = ("calibration", "ranking", "bias", "words")


def scenarios() -> str:
    """The whole page."""
    with ProcessPoolExecutor() as pool:
        found = dict(zip(SCENARIOS, pool.map(_judge, SCENARIOS), strict=True))
    sections = [HEAD]
    source = "".join(Path(each.__file__).read_text(encoding="utf-8") for each in (regression, classification))
    for title, names in sections_of(source):
        rows = [
            f"| `{name}` | {SCENARIOS[name].truth} | {right_words(SCENARIOS[name])} | {' | '.join(right)} | {text} |"
            for name in names
            for right, text in [found[name]]
        ]
        head = "| scenario | truth | right words | word | ranking | bias | texts | the first sentence |"
        sections.append(
            "\n".join(
                (f"## {title[0].upper()}{title[1:]}\n", head, "|---|---|---|--:|--:|--:|--:|---|", *rows, "")
            )
        )
    return "\n".join(sections)


def sections_of(source: str) -> list[tuple[str, list[str]]]:
    """Headings of the file of scenarios, each with the scenarios below it."""
    parts = re.split(r"^# ---- (.+) ----$", source, flags=re.MULTILINE)[1:]
    defined = (re.findall(r"^def (\w+)\(", body, re.MULTILINE) for body in parts[1::2])
    return [
        (title, [name for name in names if name in SCENARIOS])
        for title, names in zip(parts[::2], defined, strict=True)
    ]


def right_words(scenario: Scenario) -> str:
    """What the verdict must say."""
    is_any = set(regression.ANY) <= set(scenario.calibration)
    words = "any" if is_any else ", ".join(scenario.calibration).replace("not enough data", "too few")
    if len(scenario.ranking) == 1:
        words += f"; ranking {scenario.ranking[0]}"
    texts = [f'"{text}"' for text in scenario.says] + [f'never "{text}"' for text in scenario.never]
    return "; ".join([words, *texts])


def _judge(name: str) -> tuple[list[str], str]:
    """How many sets each statement is right in, and what is said of the first."""
    scenario = SCENARIOS[name]
    sets = FEW if scenario.slow else SETS
    wrong = count(scenario, range(sets))
    right = [f"{sets - wrong[statement]}/{sets}" for statement in STATEMENTS]
    return right, scenario.verdict(0).text
