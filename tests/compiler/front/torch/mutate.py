"""Damaged ``.pt2`` files: bytes, members of the archive, values of the JSON."""

import io
import json
import random
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.compiler.front.torch.table import CONVERTERS

__all__ = ["FILES", "mutant", "packed", "unpacked"]

FILES = sorted((Path(__file__).parent / "models").glob("*.pt2"))

VALUES = (
    *(
        0,
        -1,
        1,
        2,
        7,
        3.5,
        1 << 31,
        -(1 << 40),
        1 << 62,
        10**30,
        1e300,
        True,
        None,
        "",
        "x",
        "aten",
        [],
        {},
    ),
    *([0], [-1, 5], {"as_int": -1}, {"as_expr": {"expr_str": "9**9**9"}}, {"name": "nowhere"}),
    *({"as_tensor": {"name": "x"}}, {"as_ints": [1 << 40, 1 << 40]}, {"as_none": True}),
)
"""Values that replace another."""

TARGETS = sorted(CONVERTERS)


def unpacked(content: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@cache
def _members(path: Path) -> dict[str, bytes]:
    return unpacked(path.read_bytes())


def mutant(seed: int, files: Sequence[Path] = FILES) -> bytes:
    """One damaged file: of ``files``, or of the tests' own in one of five cases."""
    draw = random.Random(seed)
    path = draw.choice(FILES if draw.random() < 0.2 else files)
    members = dict(_members(path))
    if draw.random() < 0.15:
        return _damage_bytes(draw, packed(members))
    for _ in range(draw.choice((1, 1, 2, 4))):
        _damage_member(draw, members)
    return packed(members)


def _damage_bytes(draw: random.Random, content: bytes) -> bytes:
    """Anywhere, or among the headers at the end."""
    damaged = bytearray(content)
    first = draw.choice((0, max(0, len(damaged) - 1000)))
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(min(first, len(damaged) - 1), len(damaged))
        match draw.randrange(5):
            case 0:
                damaged[place] = draw.randrange(256)
            case 1:
                del damaged[place : place + draw.randrange(1, 9)]
            case 2:
                damaged[place:place] = draw.randbytes(draw.randrange(1, 5))
            case 3:
                damaged[place] ^= 1 << draw.randrange(8)
            case _ if draw.random() < 0.2:
                del damaged[max(place, 1) :]
        if not damaged:
            break
    return bytes(damaged)


def _damage_member(draw: random.Random, members: dict[str, bytes]) -> None:
    if not members:
        return
    name = draw.choice(sorted(members))
    documents = sorted(each for each in members if each.endswith(".json") and members[each])
    if documents and draw.random() < 0.9:
        name = draw.choice([*(each for each in documents if "/models/" in each), *documents])
        try:
            document = json.loads(members[name])
        except ValueError:
            return
        _damage_document(draw, document)
        members[name] = json.dumps(document).encode()
        return
    content = members.pop(name)
    match draw.randrange(4):
        case 0:
            members[name] = content[: draw.randrange(len(content) + 1)]
        case 1:
            members[name.replace("/", draw.choice(("/../", "//", "\\")), 1)] = content
        case 2:
            members[name] = draw.randbytes(len(content))


def _damage_document(draw: random.Random, document: Any) -> None:
    """The graph's calls half of the time, where there are some, otherwise anything."""
    at = document
    for key in ("graph_module", "graph", "nodes"):
        at = at.get(key) if isinstance(at, dict) else None
    if not isinstance(at, list) or not at or draw.random() < 0.5:
        _damage_value(draw, document)
        return
    place = draw.randrange(len(at))
    node = at[place]
    inputs = node.get("inputs") if isinstance(node, dict) else None
    if not isinstance(inputs, list) or not inputs or draw.random() < 0.2:
        match draw.randrange(3):
            case 0 if isinstance(node, dict):
                node["target"] = f"torch.ops.{draw.choice(TARGETS)}.default"
            case 1:
                at[place], at[0] = at[0], node
            case _:
                _damage_value(draw, at)
        return
    _damage_value(draw, draw.choice(inputs))


def _damage_value(draw: random.Random, document: Any) -> None:
    """Change one value somewhere below, leave it out, or have it twice."""
    at = document
    if not isinstance(at, dict | list):
        return
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = draw.choice(keys)
        below = at[key]
        if isinstance(below, dict | list) and below and draw.random() < 0.9:
            at = below
            continue
        match draw.randrange(8):
            case 0:
                del at[key]
            case 1 if isinstance(at, list):
                at.append(at[key])
            case 2 if isinstance(below, str):
                at[key] = draw.choice((below[:-1], f"{below}_", below.replace("t", "s")))
            case 3 | 4 if isinstance(below, int | float):
                at[key] = draw.choice((-below, below + 1, below - 1, below * 2, below * 1000))
            case 5 if isinstance(at, list):
                draw.shuffle(at)
            case _:
                at[key] = draw.choice(VALUES)
        return
