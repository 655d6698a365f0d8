"""Search for wheels of all dependencies, on each Python and kind of processor: ``make wheels``.

    python -m tests.wheels [3.14 ...]

Asks the package index for one extra after the other; nothing is installed.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
GLIBC = ("2_34", "2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")
"""C libraries that wheels are for; the first one is that of the oldest system meant."""
NOT_FOR_USERS = {"prove", "test", "peers", "zoo", "train", "dev", "docs", "examples"}


def problem(requirements: Sequence[str], python: str, machine: str) -> str:
    """Why pip cannot install ``requirements`` from wheels alone; empty if it can."""
    tags = [f"manylinux_{each}_{machine}" for each in GLIBC]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
        command += ["--disable-pip-version-check", "--target", folder, "--only-binary=:all:"]
        command += ["--implementation", "cp", "--python-version", python]
        for tag in (*tags, f"manylinux2014_{machine}", f"linux_{machine}"):
            command += ["--platform", tag]
        done = subprocess.run(
            [*command, *requirements], capture_output=True, text=True, check=False
        )
    errors = [each for each in done.stderr.splitlines() if each.startswith("ERROR")]
    return (errors or [done.stderr])[-1] if done.returncode else ""


def main() -> None:
    """Print what is missing; exit 1 if anything is."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    asked = {"no extra": project["dependencies"]}
    extras = project["optional-dependencies"]
    asked |= {name: extras[name] for name in extras if name not in NOT_FOR_USERS}
    missing = 0
    for python in sys.argv[1:] or PYTHONS:
        for machine in MACHINES:
            for name, requirements in asked.items():
                found = problem(requirements, python, machine)
                missing += bool(found)
                print(f"Python {python}, {machine}, {name}: {found or 'all'}", flush=True)
    sys.exit(missing > 0)


if __name__ == "__main__":
    main()
