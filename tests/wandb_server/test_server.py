"""The server of the tests: it must notice what it does not know, page its lists and fail on demand."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.wandb_server import WandbServer
from tests.wandb_server.filters import matches
from tests.wandb_server.graphql import Query
from tests.wandb_server.state import StoredRun


@pytest.fixture
def server() -> Iterator[WandbServer]:
    with WandbServer() as running:
        yield running


def ask(server: WandbServer, query: str, **variables: Any) -> dict[str, Any]:
    body = json.dumps({"query": query, "variables": variables}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}/graphql", body)) as answer:
        return json.load(answer)


def add_runs(server: WandbServer, count: int) -> None:
    for number in range(count):
        run = StoredRun("tester", "p", f"r{number}", f"run {number}", summary={"x": number})
        server.state.runs[("tester", "p", run.name)] = run


def test_a_known_question_leaves_nothing_unknown(server: WandbServer) -> None:
    assert ask(server, "query Viewer { viewer { entity } }") == {"data": {"viewer": {"entity": "tester"}}}
    assert server.operations() == ["query Viewer"]
    assert server.unknown == set()


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("query Q { viewer { shoeSize } }", "query.viewer.shoeSize"),
        ("query Q { launchQueues { id } }", "query.launchQueues"),
        ('query Q { viewer { entity(color: "red") } }', "query.viewer.entity(color)"),
        ('query Q { project(name: "p", tone: 1) { id } }', "query.project(tone)"),
    ],
)
def test_unknown_fields_and_arguments_are_recorded(server: WandbServer, query: str, unknown: str) -> None:
    ask(server, query)
    assert server.unknown == {unknown}


def test_a_question_that_fails_is_recorded(server: WandbServer) -> None:
    answer = ask(
        server, 'mutation Commit { commitArtifact(input: {artifactID: "none"}) { artifact { id } } }'
    )
    assert answer["data"] is None
    assert server.unknown == {"mutation Commit: KeyError('none')"}


def test_an_unknown_address_is_recorded(server: WandbServer) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{server.url}/api/v9/anything")
    assert server.unknown == {"GET /api/v9/anything"}


def test_faults_are_injected_by_operation(server: WandbServer) -> None:
    server.fault = lambda request: 503 if request.operation == "query Broken" else None
    with pytest.raises(urllib.error.HTTPError, match="503"):
        ask(server, "query Broken { viewer { id } }")
    assert ask(server, "query Viewer { viewer { entity } }")["data"] is not None


def test_lists_come_in_pages(server: WandbServer) -> None:
    add_runs(server, 7)
    query = """query Runs($after: String) { project(name: "p") { runs(first: 3, after: $after, order: "-created_at")
        { edges { node { name } } pageInfo { hasNextPage endCursor } } } }"""
    pages = [ask(server, query, after=None)["data"]["project"]["runs"]]
    while pages[-1]["pageInfo"]["hasNextPage"]:
        after = pages[-1]["pageInfo"]["endCursor"]
        pages.append(ask(server, query, after=after)["data"]["project"]["runs"])
    names = [edge["node"]["name"] for page in pages for edge in page["edges"]]
    assert names == [f"r{number}" for number in reversed(range(7))]
    assert len(pages) == 3


def test_aliases_fragments_and_directives() -> None:
    query = Query.of(
        """query Q($yes: Boolean = true) {
            a: thing { ...Name size @skip(if: $yes) }
            b: thing { size @include(if: $yes) }
        }
        fragment Name on Thing { name }""",
        {},
    )
    thing = {"__typename": "Thing", "name": "n", "size": 3}
    assert query.run({"query": {"thing": thing}}) == {"a": {"name": "n"}, "b": {"size": 3}}
    assert query.unknown == set()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, True),
        ({"state": "running"}, True),
        ({"config.uq.method": "m"}, True),
        ({"config.lr": {"$gt": 0.05}, "summary_metrics.uq/nll": {"$lte": 1}}, True),
        ({"summary_metrics.none": {"$exists": False}}, True),
        ({"$or": [{"name": "other"}, {"display_name": {"$regex": "^my"}}]}, True),
        ({"$and": [{"name": "r"}, {"state": {"$in": ["finished"]}}]}, False),
    ],
)
def test_filters(filters: dict[str, Any], expected: bool) -> None:
    config = json.dumps({"uq": {"value": {"method": "m"}}, "lr": {"value": 0.1}})
    run = StoredRun("tester", "p", "r", "my run", config=config, summary={"uq/nll": 1.0})
    assert matches(filters, run) is expected


def test_an_unknown_filter_is_not_guessed() -> None:
    with pytest.raises(KeyError, match="heartbeat"):
        matches({"heartbeat": 1}, StoredRun("tester", "p", "r", "n"))
