"""The page of evidence: what is said of data whose truth is known, and how often it is right."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.scenarios import classification, regression
from tests.scenarios.regression import Scenario
from tests.scenarios.test_scenarios import SCENARIOS, missed, most_wrong

SETS, FEWEST, SECONDS = 400, 4, 2.5
"""Sets of a scenario, fewer if they cost more than this much time of a processor, but at least so many."""
STATEMENTS = ("calibration", "ranking", "bias", "words")

HEAD = f"""# What the verdict says of known truths

Written by `docs/generate.py` from `tests/scenarios/regression.py` and `classification.py`, the contract of the verdict: whoever
changes a word of the sentence changes it there, and the tests run it. Every row is a way to make data whose truth is known.

*Right words* are the values of `verdict.calibration` that are right for it; "too few" is "not enough data", where the data cannot
tell. A text in quotes must stand in the sentence. The last column counts sets, and in how many of them the word, the ranking, the
bias and the texts were right (a wrong word brings wrong texts, which count once). A bias is counted as said. Each statement may be wrong in
5 % of sets. `make simulate SHORT=1` counts 20 sets, and goes on to 40 and to 400 where more are wrong than that explains; of 400
at most {most_wrong(400)} may be wrong: of 250 statements that are wrong in exactly 5 %, one fails that in 4 % of such suites.
`make simulate` counts 400, and goes on to 2000 ({most_wrong(2000)}); `make test` tries two. Below each table stands what is
said of a set, unless all of its sentences are like ones above.
[How certain a report is](intervals.md#the-verdict) explains the tests behind it.
"""


def scenarios() -> str:
    """The whole page."""
    sections, known = [HEAD], set[str]()
    source = "".join(Path(each.__file__).read_text(encoding="utf-8") for each in (regression, classification))
    for title, names in sections_of(source):
        rows, examples = [], []
        for name in names:
            right = _right(SCENARIOS[name])
            rows.append(f"| `{name}` | {SCENARIOS[name].truth} | {right_words(SCENARIOS[name])} | {right} |")
            if new := _new_sentences(SCENARIOS[name], known):
                examples.append(f"- `{name}`: {' '.join(new)}")
        head = [
            "| scenario | truth | right words | sets: word, ranking, bias, texts right |",
            "|---|---|---|---|",
        ]
        lines = [f"## {title[0].upper()}{title[1:]}", "", *head, *rows, "", *examples]
        sections.append("\n".join([*lines, ""] if examples else lines))
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


def _new_sentences(scenario: Scenario, known: set[str]) -> list[str]:
    """The text on a set that is judged right, if one of its sentences begins as none before; add these to those known."""
    seed = next((seed for seed in range(SETS) if not missed(scenario, seed)), 0)
    text = scenario.verdict(seed).text
    begins = {
        " ".join(re.sub(r"'.*?'|[\d.,]+", "", sentence).split()[:6])
        for sentence in re.split(r"(?<=[.?]) (?=[A-Z])", text)
    }
    is_new = not begins <= known
    known |= begins
    return [text] if is_new else []


def _right(scenario: Scenario) -> str:
    """How many sets were made, and in how many each statement is right."""
    wrong: Counter[str] = Counter()
    start, sets = time.process_time(), 0
    while sets < SETS and (sets < FEWEST or time.process_time() - start < SECONDS):
        wrong.update(missed(scenario, sets))
        sets += 1
    return f"{sets}: {', '.join(str(sets - wrong[statement]) for statement in STATEMENTS)}"
