"""Damaged ``.pt2`` files: bytes, members of the archive, values of the JSON."""

import io
import json
import random
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["FILES", "mutant", "packed", "unpacked"]

FILES = sorted((Path(__file__).parent / "models").glob("*.pt2"))

VALUES = (
    *(0, -1, 1, 2, 7, 3.5, 1 << 31, -(1 << 40), 1 << 62, True, None, "", "x", "aten", [], {}),
    *([0], [-1, 5], {"as_int": -1}, {"as_expr": {"expr_str": "9**9**9"}}, {"name": "nowhere"}),
    *({"as_tensor": {"name": "x"}}, {"as_ints": [1 << 40, 1 << 40]}, {"as_none": True}),
)
"""What takes the place of a value."""


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
def _content(path: Path) -> bytes:
    return path.read_bytes()


def mutant(seed: int) -> bytes:
    """One damaged file."""
    draw = random.Random(seed)
    content = _content(draw.choice(FILES))
    if draw.random() < 0.25:
        return _damage_bytes(draw, content)
    members = unpacked(content)
    for _ in range(draw.choice((1, 1, 2, 4))):
        _damage_member(draw, members)
    return packed(members)


def _damage_bytes(draw: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randrange(len(damaged))
        match draw.randrange(4):
            case 0:
                damaged[place] = draw.randrange(256)
            case 1:
                del damaged[place : place + draw.randrange(1, 9)]
            case 2:
                damaged[place:place] = draw.randbytes(draw.randrange(1, 5))
            case _:
                del damaged[max(place, 1) :]
    return bytes(damaged)


def _damage_member(draw: random.Random, members: dict[str, bytes]) -> None:
    if not members:
        return
    name = draw.choice(sorted(members))
    documents = [each for each in members if each.endswith(".json") and _is_json(members[each])]
    if documents and draw.random() < 0.85:
        name = draw.choice([*(each for each in documents if "/models/" in each), *documents])
        document = json.loads(members[name])
        _damage_value(draw, document)
        members[name] = json.dumps(document).encode()
        return
    content = members.pop(name)
    match draw.randrange(3):
        case 0:
            members[name] = content[: draw.randrange(len(content) + 1)]
        case 1:
            members[name.replace("/", draw.choice(("/../", "//", "\\")), 1)] = content


def _is_json(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict | list)
    except ValueError:
        return False


def _damage_value(draw: random.Random, document: Any) -> None:
    """Change one value somewhere below, or leave it out, or have it twice."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = draw.choice(keys)
        below = at[key]
        if isinstance(below, dict | list) and below and draw.random() < 0.85:
            at = below
            continue
        match draw.randrange(6):
            case 0:
                del at[key]
            case 1 if isinstance(at, list):
                at.append(at[key])
            case 2 if isinstance(below, str):
                at[key] = draw.choice((below[:-1], f"{below}_", below.replace("t", "s")))
            case _:
                at[key] = draw.choice(VALUES)
        return
