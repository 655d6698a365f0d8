"""Files that are damaged, or made to harm: one clear error, and nothing in them is ever run."""

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.compiler.errors import CompilerError, ModelError, UnsupportedOperatorError
from dovetail.compiler.front.table import open_model

from .hostile import run_mutant
from .mutate import FILES, packed, unpacked

WORDS = next(path for path in FILES if path.stem == "words")
REGIONS = next(path for path in FILES if path.stem == "regions")
COUNTER = next(path for path in FILES if path.stem == "counter")


AUTOCAST = {
    "target": "torch.ops.higher_order.wrap_with_autocast",
    "inputs": [
        {"name": "", "arg": each}
        for each in (
            {"as_string": "cpu"}, {"as_scalar_type": 13}, {"as_bool": True}, {"as_bool": False},
            {"as_graph": {"name": "inner", "graph": {}}},
        )
    ],
}  # fmt: skip


class Harm:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return Path.touch, (Path("harmed"),)  # type: ignore[return-value]


def changed(
    change: Callable[[dict[str, Any]], None], member: str = "/models/", path: Path = WORDS
) -> bytes:
    """A file in which ``change`` was made to the JSON of a member."""
    members = unpacked(path.read_bytes())
    name = next(each for each in members if member in each)
    document = json.loads(members[name])
    change(document)
    members[name] = json.dumps(document).encode()
    return packed(members)


def first_weight(**fields: Any) -> bytes:
    """A file in which the meta of its first weight says something else."""

    def change(document: dict[str, Any]) -> None:
        entry = next(iter(document["config"].values()))
        for name, value in fields.items():
            (entry if name in entry else entry["tensor_meta"])[name] = value

    return changed(change, "weights_config")


def graph(change: Callable[[dict[str, Any]], None]) -> bytes:
    return changed(lambda document: change(document["graph_module"]["graph"]))


def one(number: int) -> dict[str, int]:
    return {"as_int": number}


def region(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file in which the call of a region was changed."""

    def found(graph: dict[str, Any]) -> None:
        change(next(node for node in graph["nodes"] if "higher_order" in node["target"]))

    return changed(lambda document: found(document["graph_module"]["graph"]), path=REGIONS)


def spec(place: int, side: str = "input", **new: Any) -> bytes:
    """A file in which an input or output of the program is said to be another."""

    def change(document: dict[str, Any]) -> None:
        document["graph_module"]["signature"][f"{side}_specs"][place] = new

    return changed(change)


def tensor(name: object) -> dict[str, Any]:
    return {"arg": {"as_tensor": {"name": name}}}


def last(place: int, argument: object) -> bytes:
    """A file in which the last node, an argmax, has another argument."""
    return graph(lambda g: g["nodes"][-1]["inputs"][place].update(arg=argument))


def made(output: object) -> bytes:
    """A file in which the first node has another output."""
    return graph(lambda g: g["nodes"][0].update(outputs=[output]))


CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "not a .pt2 file .*torch.export.save"),
    "cut": (lambda: WORDS.read_bytes()[:-40], "not a .pt2 file .*torch.export.save"),
    "another zip": (lambda: packed({"a": b"b"}), "no archive of torch.export"),
    "a pickled model": (
        lambda: packed({"m/data.pkl": pickle.dumps(Harm()), "m/version": b"3"}),
        "a pickle, which is never loaded; write it with",
    ),
    "torch 2.7": (
        lambda: packed({"serialized_exported_program.json": b"{}", "version": b"1"}),
        "torch 2.7 or older, whose weights are pickles",
    ),
    "compressed": (
        lambda: packed(unpacked(WORDS.read_bytes()), zipfile.ZIP_DEFLATED),
        "compressed members; required stored ones",
    ),
    "another format": (
        lambda: packed({**unpacked(WORDS.read_bytes()), "words/archive_format": b"pt9"}),
        "required format pt2",
    ),
    "no program": (
        lambda: packed({"m/archive_format": b"pt2"}), "0 programs in the archive, required 1"
    ),
    "no JSON": (
        lambda: packed({"m/archive_format": b"pt2", "m/models/m.json": b"{" * 100_000}),
        "not JSON",
    ),
    "deep JSON": (
        lambda: packed({"m/archive_format": b"pt2", "m/models/m.json": b"[" * 100_000}),
        "not JSON",
    ),
    "another version": (
        lambda: changed(lambda d: d["schema_version"].update(major=9)),
        "schema version 9 of torch.export; required 8",
    ),
    "nodes that are a number": (
        lambda: graph(lambda g: g.update(nodes=3)), "field 'nodes' is 3; required a list"
    ),
    "a pickled weight": (lambda: first_weight(use_pickle=True), "a pickle, which is never loaded"),
    "a way out of the archive": (
        lambda: first_weight(path_name="../../../etc/passwd"), "required a member's name"
    ),
    "a missing weight": (lambda: first_weight(path_name="weight_99"), "no member"),
    "a member without a name": (
        lambda: packed({"?/archive_format": b"pt2"}).replace(b"?/arch", bytes(6)),
        "no archive of torch.export",
    ),
    "a tensor that is a number": (
        lambda: graph(
            lambda g: g["nodes"][0].update(
                target="torch.ops.aten.add_.Tensor",
                inputs=[{"name": "self", "arg": {"as_tensor": 1}}],
            )
        ),
        "is malformed",
    ),
    "a dimension that is not whole": (
        lambda: graph(
            lambda g: next(each for each in g["nodes"] if "argmax" in each["target"])["inputs"][1]
            .update(arg={"as_float": 1.0})
        ),
        "malformed: TypeError",
    ),
    "negative sizes": (lambda: first_weight(sizes=[one(-1), one(4)]), r"required 0 or more"),
    "negative strides": (lambda: first_weight(strides=[one(-1), one(4)]), "required 0 or more"),
    "fewer strides than sizes": (
        lambda: first_weight(strides=[one(4)]), r"tensor '.*' has 2 sizes, \(4,\)"
    ),
    "an offset beyond the bytes": (
        lambda: first_weight(storage_offset=one(1 << 40)), "its bytes have 320 elements"
    ),
    "sizes beyond the bytes": (
        lambda: first_weight(sizes=[one(1 << 40), one(1 << 40)]), "its bytes have 320 elements"
    ),
    "one element again and again": (
        lambda: first_weight(sizes=[one(1 << 20), one(1 << 20)], strides=[one(0), one(0)]),
        "its bytes have 320 elements",
    ),
    "complex numbers": (lambda: first_weight(dtype=10), "elements of type complex64"),
    "an unknown operator": (
        lambda: graph(lambda g: g["nodes"][0].update(target="os.system")),
        "operator os.system is not supported",
    ),
    "an argument that the operator does not have": (
        lambda: graph(lambda g: g["nodes"][0]["inputs"][0].update(name="nothing")),
        "is malformed: TypeError",
    ),
    "a region without a graph": (
        lambda: region(lambda node: node["inputs"].pop(1)), "malformed: it has no graph"
    ),
    "a region that is called with too little": (
        lambda: region(lambda node: node["inputs"].pop()), "malformed: [0-9] inputs"
    ),
    "a region with a result too many": (
        lambda: region(lambda node: node["outputs"].append(node["outputs"][0])),
        "malformed: 3 outputs, 4 results",
    ),
    "autocast": (
        lambda: region(lambda node: node.update(AUTOCAST)), "autocast; export without it"
    ),
    "a tensor that nothing computes": (
        lambda: graph(lambda g: g["nodes"][0]["inputs"][0]["arg"].update(as_tensor={"name": "?"})),
        "reads '\\?', which no node before it computes",
    ),
    "another type than it computes": (
        lambda: graph(lambda g: g["tensor_values"]["embedding"].update(dtype=8)),
        "gives float32.*; the file says float64",
    ),
    "an input that is a token": (
        lambda: spec(-1, token=tensor("tokens")), "'tokens' is a token; required tensors"
    ),
    "an input that is a number": (
        lambda: spec(-1, user_input={"arg": {"as_int": 3}}), "reads 'tokens', which no node"
    ),
    "an input of another kind": (
        lambda: spec(-1, user_input={"arg": {"as_custom_obj": {"name": "tokens"}}}),
        "input 'tokens' is as_custom_obj; required tensors",
    ),
    "an input twice": (
        lambda: spec(0, parameter={"arg": {"name": "tokens"}, "parameter_name": "tokens.weight"}),
        "input 'tokens' is defined twice",
    ),
    "an output that is a number's name": (
        lambda: spec(0, "output", user_output={"arg": {"as_sym_int": {"as_name": "s0"}}}),
        "an output as_sym_int; required tensors",
    ),
    "an output that is a gradient": (
        lambda: spec(0, "output", gradient_to_parameter=tensor("argmax")),
        "an output that is a gradient_to_parameter",
    ),
    "an argument of no kind": (lambda: last(1, {"as_complex": 1}), "an argument as_complex"),
    "an argument of two kinds": (
        lambda: last(1, {"as_int": 1, "as_bool": True}), "an argument has 2 kinds"
    ),
    "an argument that is a list": (lambda: made([3]), r"an argument is \[3\]; required an object"),
    "a number that no node computes": (
        lambda: last(1, {"as_sym_int": {"as_name": "u7"}}), "reads 'u7', no number"
    ),
    "a result without a name": (
        lambda: made({"as_tensor": {"name": 3}}), "tensor 3 has no type in the file"
    ),
    "a result of no kind": (lambda: made({"as_complex": 3}), "a result as_complex"),
    "a result too many": (
        lambda: graph(lambda g: g["nodes"][0]["outputs"].append({"as_tensor": {"name": "matmul"}})),
        "has 2 outputs",
    ),
    "sparse tensors": (
        lambda: graph(lambda g: g["tensor_values"]["embedding"].update(layout=1)),
        "tensor 'embedding' has layout 1; required dense ones",
    ),
    "the same node twice": (
        lambda: graph(lambda g: g["nodes"].insert(1, g["nodes"][0])), "a second time"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_is_refused_with_its_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, said = CASES[name]
    path = tmp_path / "model.pt2"
    path.write_bytes(make())
    with pytest.raises((ModelError, UnsupportedOperatorError), match=said):
        open_model(path).to_graph()
    assert not Path("harmed").exists()


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    content = packed({"m/archive_format": b"pt2", "m/models/m.json": b"[]" * 500})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.start_dir
    head = bytearray(content[start:])
    for _ in range(1):
        place = head.index(b"m/models/m.json") - 46
        head[place + 20 : place + 28] = struct.pack("<II", 1 << 30, 1 << 30)
    path = tmp_path / "model.pt2"
    path.write_bytes(content[:start] + bytes(head))
    with pytest.raises(ModelError, match=r"members that overlap|not a \.pt2 file"):
        open_model(path)


def test_a_pickled_file_is_told_how_to_be_exported(tmp_path: Path) -> None:
    for name, content in (("m.pth", packed({"m/data.pkl": pickle.dumps(Harm())})), ("m.pt", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(CompilerError, match=r"(never loaded|not a .*); write it with torch\."):
            open_model(path)


def test_an_expression_is_never_run(tmp_path: Path) -> None:
    for text in ("__import__('os').system('touch harmed')", "9**9**9**9", "(" * 5000, "s" * 20000):

        def change(graph: dict[str, Any], text: str = text) -> None:
            size = {"as_expr": {"expr_str": text, "hint": None}}
            graph["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0] = size

        path = tmp_path / "model.pt2"
        path.write_bytes(changed(change, path=COUNTER))
        with pytest.raises(CompilerError, match=r"size|open sizes"):
            open_model(path).to_graph()


def test_damaged_files_become_graphs_or_are_refused(tmp_path: Path) -> None:
    said = [run_mutant(seed, tmp_path / "model.pt2") for seed in range(100)]
    assert len(set(said)) > 30
    assert None in said
