"""GraphQL without a schema: a parsed query is walked over plain dictionaries.

A value that is callable is a field with arguments; it is called with those of the query. Aliases, fragments,
variables and the ``include`` and ``skip`` directives work. A field that the data do not have, or an argument that
a field does not take, is recorded in ``unknown`` so that a test can fail on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import language as gql
from graphql import parse

Resolver = Callable[..., Any]


def connection(nodes: Iterable[Any], first: int | None = None, after: str | None = None) -> dict[str, Any]:
    """A page of a list as GraphQL clients expect it: edges with cursors and the information where to go on."""
    everything = list(nodes)
    start = int(after) + 1 if after else 0
    page = everything[start : start + first if first else None]
    end = start + len(page) - 1
    return {
        "edges": [{"node": node, "cursor": str(start + index)} for index, node in enumerate(page)],
        "nodes": page,
        "totalCount": len(everything),
        "pageInfo": {
            "__typename": "PageInfo",
            "hasNextPage": end + 1 < len(everything),
            "hasPreviousPage": start > 0,
            "startCursor": str(start),
            "endCursor": str(end) if page else None,
        },
    }


@dataclass
class Query:
    """One operation of a request, ready to be walked over the roots."""

    operation: gql.OperationDefinitionNode
    fragments: Mapping[str, gql.FragmentDefinitionNode]
    variables: Mapping[str, Any]
    unknown: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, source: str, variables: Mapping[str, Any] | None) -> Query:
        """Parse a request; variables that are not given take their defaults."""
        definitions = parse(source, no_location=True).definitions
        operation = next(d for d in definitions if isinstance(d, gql.OperationDefinitionNode))
        fragments = {d.name.value: d for d in definitions if isinstance(d, gql.FragmentDefinitionNode)}
        query = cls(operation, fragments, {})
        defaults = {
            d.variable.name.value: query._value(d.default_value) if d.default_value else None
            for d in operation.variable_definitions
        }
        query.variables = {**defaults, **(variables or {})}
        return query

    @property
    def name(self) -> str:
        """Kind and name of the operation, e.g. ``mutation UpsertBucket``."""
        kind = self.operation.operation.value
        return f"{kind} {self.operation.name.value}" if self.operation.name else kind

    def run(self, roots: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Answer of the operation from the root objects ``query`` and ``mutation``."""
        kind = self.operation.operation.value
        answer: dict[str, Any] = {}
        self._fill(answer, self.operation.selection_set, roots[kind], kind)
        return answer

    def _select(self, selection: gql.SelectionSetNode | None, value: Any, path: str) -> Any:
        """The part of ``value`` that is asked for."""
        if selection is None or value is None:
            return value
        if isinstance(value, list):
            return [self._select(selection, item, path) for item in value]
        answer: dict[str, Any] = {}
        self._fill(answer, selection, value, path)
        return answer

    def _fill(
        self, answer: dict[str, Any], selection: gql.SelectionSetNode, source: Mapping[str, Any], path: str
    ) -> None:
        for node in selection.selections:
            if not self._included(node):
                continue
            if isinstance(node, gql.FieldNode):
                self._fill_field(answer, node, source, path)
            elif self._applies(fragment := self._fragment(node), source):
                self._fill(answer, fragment.selection_set, source, path)

    def _fill_field(
        self, answer: dict[str, Any], node: gql.FieldNode, source: Mapping[str, Any], path: str
    ) -> None:
        name = node.name.value
        place = f"{path}.{name}"
        if name not in source and name != "__typename":
            self.unknown.add(place)
        value = self._select(node.selection_set, self._resolved(node, source.get(name), place), place)
        key = node.alias.value if node.alias else name
        earlier = answer.get(key)
        answer[key] = {**earlier, **value} if isinstance(earlier, dict) and isinstance(value, dict) else value

    def _resolved(self, node: gql.FieldNode, value: Any, place: str) -> Any:
        """Call a field with the arguments of the query; those it does not take are recorded if they say something."""
        arguments = {a.name.value: self._value(a.value) for a in node.arguments}
        taken = inspect.signature(value).parameters if callable(value) else {}
        unused = {name for name, given in arguments.items() if name not in taken and given is not None}
        self.unknown.update(f"{place}({name})" for name in unused)
        if not callable(value):
            return value
        return value(**{name: given for name, given in arguments.items() if name in taken})

    def _fragment(self, node: gql.SelectionNode) -> Any:
        return self.fragments[node.name.value] if isinstance(node, gql.FragmentSpreadNode) else node

    @staticmethod
    def _applies(fragment: Any, source: Mapping[str, Any]) -> bool:
        """Whether a fragment is about this object's type or one of its interfaces."""
        condition, kind = fragment.type_condition, source.get("__typename")
        return (
            condition is None
            or kind is None
            or condition.name.value in (kind, *source.get("__interfaces", ()))
        )

    def _included(self, node: gql.SelectionNode) -> bool:
        for directive in node.directives:
            on = self._value(directive.arguments[0].value)
            if on == (directive.name.value == "skip"):
                return False
        return True

    def _value(self, node: gql.ValueNode) -> Any:
        match node:
            case gql.VariableNode():
                return self.variables.get(node.name.value)
            case gql.IntValueNode():
                return int(node.value)
            case gql.FloatValueNode():
                return float(node.value)
            case gql.NullValueNode():
                return None
            case gql.ListValueNode():
                return [self._value(item) for item in node.values]
            case gql.ObjectValueNode():
                return {item.name.value: self._value(item.value) for item in node.fields}
        return node.value  # type: ignore[attr-defined]  # string, boolean or enum
