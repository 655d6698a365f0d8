"""``make kills``: SIGKILL for compile, run, tune and explore, and what is left of their files.

Every command writes in one folder, with one cache, as one user's commands would.  After each kill
the files that are there under their own names are those of a whole run.  After some, every command
runs to its end in what the killed ones left, and gives what it gave at first.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
DOVETAIL = (sys.executable, "-m", "dovetail.compiler")
KILLS_BETWEEN = 20
"""Kills before all commands run to their ends."""
LIMIT = 600
"""Seconds that a command may take which is not killed."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and the files it leaves that are the same bytes after every whole run."""

    arguments: str
    files: tuple[str, ...] = ()


COMMANDS = (
    Command("compile digits_int8.onnx --target vta:tiny -o vta.dvt", ("vta.dvt",)),
    Command("compile digits.onnx --target cpu -o cpu.dvt", ("cpu.dvt",)),
    Command("run vta.dvt --input image=image.npy --output-dir sim", ("sim/logits.npy",)),
    Command(
        "run cpu.dvt --device cpu --input image=image.npy --output-dir cpu", ("cpu/logits.npy",)
    ),
    Command("tune digits.onnx -o tuned --trials 2 --jobs 1"),
    Command("explore digits_int8.onnx --space space.toml -o sweep --jobs 1"),
)
SPACE = '[base]\nconfig = "tiny"\n[hardware]\nact_depth = [512, 1024]\n'


def main() -> None:
    """Kill commands at random moments; exit 1 where a file is damaged or a later run fails."""
    parser = argparse.ArgumentParser(prog="kills")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in ("digits.onnx", "digits_int8.onnx"):
            shutil.copy(DIGITS / model, folder)
        image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
        np.save(folder / "image.npy", image)
        (folder / "space.toml").write_text(SPACE)
        (folder / "cache").mkdir(mode=0o700)
        sound: dict[str, bytes] = {}
        seconds = {each: _whole(each, folder, sound) for each in COMMANDS}
        for number in range(1, arguments.count + 1):
            command = rng.choice(COMMANDS)
            if rng.random() < 0.3:
                _forget(folder, rng)
            dead = _killed(command, folder, rng.uniform(0, 1.2 * seconds[command]))
            killed[command.arguments.split()[0] if dead else "ended before"] += 1
            _compare(folder, sound, f"kill {number}, {command.arguments}")
            if number % KILLS_BETWEEN == 0 or number == arguments.count:
                for each in COMMANDS:
                    seconds[each] = _whole(each, folder, sound)
    print(f"{arguments.count} kills, seed {arguments.seed}: {dict(killed)}; no damaged file")


def _start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DOVETAIL_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        (*DOVETAIL, *command.arguments.split()),
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _whole(command: Command, folder: Path, sound: dict[str, bytes]) -> float:
    """Run to the end.  Results: its seconds; the first run's files are kept in ``sound``."""
    begin = time.monotonic()
    output, _ = (process := _start(command, folder)).communicate(timeout=LIMIT)
    text = output.decode(errors="replace")
    if process.returncode:
        sys.exit(f"{command.arguments}: exit status {process.returncode} after kills\n{text}")
    for file in command.files:
        if sound.setdefault(file, (folder / file).read_bytes()) != (folder / file).read_bytes():
            sys.exit(f"{command.arguments}: {file} differs from that of the first run")
    return time.monotonic() - begin


def _killed(command: Command, folder: Path, delay: float) -> bool:
    """Start, wait, kill with all children; whether it was still at work."""
    process = _start(command, folder)
    try:
        process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    return False


def _forget(folder: Path, rng: random.Random) -> None:
    """Take away the cache or results, so that they are written again."""
    for name in rng.sample(("cache", "tuned", "sweep"), 2):
        shutil.rmtree(folder / name, ignore_errors=True)


def _compare(folder: Path, sound: Mapping[str, bytes], after: str) -> None:
    for file, content in sound.items():
        if not (folder / file).exists() or (folder / file).read_bytes() != content:
            sys.exit(f"{after}: {file} is damaged or gone")


main()
