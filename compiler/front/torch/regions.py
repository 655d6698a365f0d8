"""Regions of a program: a part is a graph of its own, which is called; here it takes its place.

``torch.no_grad`` and ``torch.autocast`` around a part of ``forward`` make such regions.  Without
gradients the first means nothing; the second is taken where it is disabled.
"""

from collections.abc import Mapping
from typing import Any

from ...errors import ModelError, UnsupportedOperatorError
from .forms import list_of, table_of

__all__ = ["without_regions"]

HIGHER = "torch.ops.higher_order."
GRAD, AUTOCAST = f"{HIGHER}wrap_with_set_grad_enabled", f"{HIGHER}wrap_with_autocast"
BEFORE = {GRAD: 1, AUTOCAST: 4}
"""Arguments before the graph: for autocast the device, the type, and whether it is enabled."""
TABLES = ("tensor_values", "sym_int_values")


def without_regions(graph: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a graph, each region's nodes in place of its call.

    Names inside get the call's before them, except for the region's inputs and outputs.
    Raises ModelError for a region of another form, UnsupportedOperatorError for autocast that is
    enabled.
    """
    nodes = list[Any]()
    tables = {name: dict(table_of(graph, name)) for name in TABLES}
    for node in list_of(graph, "nodes"):
        target = node.get("target") if isinstance(node, dict) else None
        if not isinstance(target, str) or target not in BEFORE:
            nodes.append(node)
            continue
        inner, given = _region(node, BEFORE[target])
        inside = without_regions(inner)
        where = str(node.get("name") or target)
        names = dict(zip(map(_name, list_of(inside, "inputs")), given, strict=True))
        copies = _outputs(node, inside, names)
        for table, found in tables.items():
            entries = inside[table].items()
            found.update({_renamed(name, names, where): each for name, each in entries})
        nodes += [_moved(each, names, where) for each in inside["nodes"]]
        nodes += copies
    return {**graph, **tables, "nodes": nodes}


def _region(node: Mapping[str, Any], before: int) -> tuple[Mapping[str, Any], list[str]]:
    """The graph, and the names of what it is called with."""
    arguments = [
        each.get("arg") if isinstance(each, dict) else None for each in list_of(node, "inputs")
    ]
    held = arguments[before] if len(arguments) > before else None
    called = held.get("as_graph") if isinstance(held, dict) else None
    graph = called.get("graph") if isinstance(called, dict) else None
    if not isinstance(graph, dict):
        raise _malformed(node, "it has no graph")
    if before > 1 and arguments[2] != {"as_bool": False}:
        raise UnsupportedOperatorError(f"node {node.get('name')!r}: autocast; export without it")
    given = list(map(_name, arguments[before + 1 :]))
    if len(given) != len(list_of(graph, "inputs")) or "" in given:
        raise _malformed(node, f"{len(given)} inputs")
    return graph, given


def _outputs(
    node: Mapping[str, Any], inside: Mapping[str, Any], names: dict[str, str]
) -> list[dict[str, Any]]:
    """Give what the region computes the names of the call's results.

    Adds to ``names``; returns nodes for results that have another name already.
    """
    copies = []
    own, outer = (list(map(_name, list_of(each, "outputs"))) for each in (inside, node))
    if len(own) != len(outer) or "" in (*own, *outer):
        raise _malformed(node, f"{len(own)} outputs, {len(outer)} results")
    for name, result in zip(own, outer, strict=True):
        if names.setdefault(name, result) != result:
            given = {"name": "self", "arg": {"as_tensor": {"name": names[name]}}}
            copies.append(
                {
                    "target": "torch.ops.aten.alias.default",
                    "name": result,
                    "inputs": [given],
                    "outputs": [{"as_tensor": {"name": result}}],
                }
            )
    return copies


def _moved(node: Any, names: Mapping[str, str], where: str) -> Any:
    """A node of a region, by its names outside."""
    if not isinstance(node, dict):
        return node
    inputs, outputs = node.get("inputs"), node.get("outputs")
    if isinstance(inputs, list):
        inputs = [
            {**each, "arg": _told(each.get("arg"), names, where)}
            if isinstance(each, dict)
            else each
            for each in inputs
        ]
    name = node.get("name")
    return {
        **node,
        "inputs": inputs,
        "outputs": _told(outputs, names, where),
        "name": _renamed(name, names, where) if isinstance(name, str) else name,
    }


def _told(value: Any, names: Mapping[str, str], where: str) -> Any:
    """An argument in which every name is the one outside."""
    if isinstance(value, list):
        return [_told(each, names, where) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _renamed(each, names, where)
        if key in ("name", "as_name") and isinstance(each, str)
        else _told(each, names, where)
        for key, each in value.items()
    }


def _renamed(name: str, names: Mapping[str, str], where: str) -> str:
    return names.get(name, f"{where}.{name}")


def _name(argument: Any) -> str:
    """Name of a tensor or a number; empty for anything else."""
    held = next(iter(argument.values()), None) if isinstance(argument, dict) else None
    found = held.get("name") or held.get("as_name") if isinstance(held, dict) else None
    return found if isinstance(found, str) else ""


def _malformed(node: Mapping[str, Any], problem: str) -> ModelError:
    return ModelError(f"node {node.get('name')!r} ({node.get('target')}) is malformed: {problem}")
