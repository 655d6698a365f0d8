"""The repository itself: what the pages promise exists, and what the style rules out does not."""

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click
import pytest

from dovetail.compiler.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler", "package")
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md"))
    if path.name != "CHANGELOG.md"
)
PLACES = ("", "compiler", "compiler/targets", "compiler/targets/cpu", "compiler/targets/vta")
"""Where paths in pages begin."""
TARGET = re.compile(r"^([a-z][a-z-]*):.*?(?:## (.*))?$", re.MULTILINE)
BEGINNINGS = re.compile(r"\s*(What|Of|That|Those|Whether|Which)\b")
"""First words of docstrings that do not say what a thing is."""
AVOIDED = {
    r"(?<![Tt]here )\b(is|are) no (?!longer|faster|larger|smaller|more|less|other|better|worse"
    r"|substitute)(?=[a-z])": "is not a",
    r"\w's way\b": "the way that ... takes",
    r"\bin the place of\b": "in place of, instead of",
    r"\banyhow\b": "anyway, in any case",
    r"\b(?!gemm)([a-z]{2,}) \1\b(?!:)": "a word once",
    r"\bone's own\b": "your own",
}
"""Turns of phrase that read as translated, or as a slip, and what to say instead."""
UNSAFE = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def make_targets() -> dict[str, str]:
    """Targets of the Makefile and their help."""
    return dict(TARGET.findall((ROOT / "Makefile").read_text()))


def test_every_target_of_the_makefile_has_help() -> None:
    targets = make_targets()
    assert {"setup", "demo", "test", "check", "differential", "docs"} <= set(targets)
    assert all(targets.values()), [name for name, text in targets.items() if not text]
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(phony.group(1).split()) == set(targets)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name, text in targets.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", shown.stdout, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_the_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets, commands = make_targets(), set(main.commands)
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
    for words in re.findall(r"\bmake ((?:[a-z][a-z-]*\b ?)+)", code):
        for name in words.split():
            assert name in targets, f"make {name}"
    for name in re.findall(r"\bdovetail ([a-z]+)\b", code):
        assert name in commands, f"dovetail {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_in_the_pages_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_folders_in_the_pages_exist(page: Path) -> None:
    for name in re.findall(
        r"`(?!build/)([a-z_]+(?:/[a-z_]+)+(?:\.py|/)?)`", page.read_text(encoding="utf-8")
    ):
        found = [ROOT / place / (name + end) for place in PLACES for end in ("", ".py")]
        assert any(path.exists() for path in found), name


def test_the_continuous_integration_runs_the_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text()
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_dependency_has_a_reason_and_a_known_version() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    needed = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        needed += extra
    known = (ROOT / "constraints.txt").read_text().lower().replace("_", "-")
    for requirement in needed:
        assert re.search(rf'"{re.escape(requirement)}", +# \w', text), requirement
        name = re.split(r"[<>=\[]", requirement)[0].lower().replace("_", "-")
        assert f"\n{name}==" in known, f"{name} is not in constraints.txt"


def test_every_folder_of_sources_is_a_package() -> None:
    for path in sources():
        assert (path.parent / "__init__.py").exists(), path.parent
    assert not (ROOT / "dovetail").exists()


def test_no_source_uses_what_the_style_rules_out() -> None:
    found = []
    for path in sources():
        if path.stem in ("utils", "helpers"):
            found.append(f"{path}: name the subject of the module")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.ExceptHandler(type=None):
                    wrong = "bare except"
                case ast.ImportFrom(names=[ast.alias(name="*")]):
                    wrong = "star import"
                case ast.Import(names=names) if {n.name.split(".")[0] for n in names} & UNSAFE:
                    wrong = "modules hold data only"
                case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNSAFE:
                    wrong = "modules hold data only"
                case ast.Name(id="exec") if path == ROOT / "isa" / "frozen.py":
                    continue  # methods of names of fields
                case ast.Name(id="SystemExit" | "exec" | "eval") if path.name != "__main__.py":
                    wrong = node.id
                case _:
                    continue
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {wrong}")
    assert not found, "\n".join(found)


def test_every_source_says_what_it_owns() -> None:
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path.relative_to(ROOT)


def test_docstrings_say_first_what_a_thing_is() -> None:
    found = []
    others = [(ROOT / name).rglob("*.py") for name in ("tests", "benchmarks", "examples")]
    for path in chain(sources(), *others):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))) if BEGINNINGS.match(text):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text[:60]!r}")
    assert not found, "\n".join(found)


def test_every_option_says_what_it_is() -> None:
    groups: list[tuple[str, click.Command]] = [("dovetail", main)]
    for name, command in groups:
        if isinstance(command, click.Group):
            groups += [(f"{name} {inner}", each) for inner, each in command.commands.items()]
        context = click.Context(command)
        for option in command.params:
            if isinstance(option, click.Option):
                said = (option.get_help_record(context) or ("", ""))[1]
                assert re.match(r"[^\[]", said), f"{name} {option.opts[-1]} has no help"
                assert not re.match(r"(Of|That|Those|As) ", said), (
                    f"{name} {option.opts[-1]}: {said}"
                )


def prose() -> Iterator[tuple[str, str]]:
    """Where each piece of prose stands, and the piece: pages without code, strings and comments."""
    for page in (*PAGES, *(ROOT / "docs" / "guides").glob("*.md")):
        if page.name != "isa.md":  # its text is in isa/
            text = re.sub(r"^```.*?^```|`[^`]+`", "x", page.read_text("utf-8"), flags=re.M | re.S)
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{page.relative_to(ROOT)}, about line {number}", line
    for path in sources():
        text, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{where}:{node.lineno}", re.sub(r"``.+?``", "x", node.value, flags=re.S)
        for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
            if token.type == tokenize.COMMENT:
                yield f"{where}:{token.start[0]}", token.string


def test_prose_reads_as_english() -> None:
    found = []
    for where, text in prose():
        joined = " ".join(text.split())
        for pattern, instead in AVOIDED.items():
            for each in re.finditer(pattern, joined):
                around = joined[max(0, each.start() - 30) : each.end() + 30]
                found.append(f"{where}: ...{around}...: say {instead!r}")
    assert not found, "\n".join(found)


def test_only_the_model_of_the_example_is_large() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in listed.stdout.split("\0") if name}
    assert sizes["examples/digits/digits_int8.onnx"] < 200_000
    assert not [name for name, size in sizes.items() if size > 200_000]
