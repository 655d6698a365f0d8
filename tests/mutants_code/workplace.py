"""A copy of the tree where tests run with faults: without network, with limits, apart.

The copy is imported through ``PYTHONPATH``, so that the environment's own tree stays unseen.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from .neighbours import ROOTS

__all__ = ["ENDED", "Workplace"]

MEMORY = 12 << 30
TOGETHER_LIMIT = 900
"""CPU seconds of test files that are recorded together."""
LONGEST = 600
"""Seconds that a recorded test takes at most, those of processes that build hardware included."""
ENDED = "no end"
"""Name of a fault that makes tests last too long, or ends their process."""
PYTEST = ("pytest", "--tb=short", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Workplace:
    """Everything lies in ``folder``: the tree's copy, a cache, a home and files of tests."""

    folder: Path

    @property
    def tree(self) -> Path:
        """The root of the copy."""
        return self.folder / "tree"

    def prepare(self, root: Path) -> None:
        """Copy all files of ``root`` that git knows or does not ignore."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        shutil.rmtree(self.tree, ignore_errors=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.tree / name)
        names = self.tree / "build" / "types" / "dovetail"
        names.mkdir(parents=True)
        for part in ROOTS:
            (names / part).symlink_to(self.tree / part)
        (names / "__init__.py").symlink_to(self.tree / "package" / "__init__.py")
        # Checked by content: a fault may leave a file's size and second as they were.
        quiet = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
        subprocess.run([sys.executable, *quiet, *ROOTS, "tests"], cwd=self.tree, check=True)
        for name in ("cache", "home"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)

    def watch(self, tests: Sequence[str], data: Path, notes: Path) -> None:
        """Run test files as they are; the lines that each test reaches are written to ``data``.

        A test that takes long is ended.
        """
        options = [f"--data-file={data}", f"--source={','.join(ROOTS)}", f"--rcfile={os.devnull}"]
        environment = self._environment("cache") | {"TEST_NOTES": str(notes)}
        run = ["coverage", "run", *options, "-m", *PYTEST, "-p", "tests.mutants_code.contexts"]
        self._run([*run, f"--timeout={LONGEST}", *tests], TOGETHER_LIMIT, environment)

    def try_fault(self, tests: Sequence[str], limit: float) -> str:
        """The first of the tests that fails; "" if they pass, ``ENDED`` if the run ends otherwise,
        as by more than ``limit`` CPU seconds.

        What they cached is forgotten: the fault may have made it.
        """
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        shutil.copytree(self.folder / "cache", self.folder / "copy", copy_function=os.link)
        command = [*PYTEST, "--timeout=0", "-x", *tests]
        code, output = self._run(command, limit, self._environment("copy"))
        failed = re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.MULTILINE)
        return "" if code == 0 else (failed or [ENDED])[0]

    def _run(
        self, arguments: Sequence[str], limit: float, environment: dict[str, str]
    ) -> tuple[int, str]:
        shutil.rmtree(self.folder / "temporary", ignore_errors=True)
        (self.folder / "temporary").mkdir()
        output = self.folder / "output"
        with output.open("wb") as stream:
            running = subprocess.Popen(
                [*_apart(), sys.executable, "-m", *arguments],
                cwd=self.tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                preexec_fn=partial(_set_limits, limit),
            )
            try:
                running.wait(timeout=20 * limit + 120)  # what only waits takes no CPU seconds
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
        return running.returncode, output.read_bytes().decode(errors="replace")

    def _environment(self, cache: str) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": str(self.tree / "build" / "types"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DOVETAIL_CACHE": str(self.folder / cache),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "temporary"),
        }


def _set_limits(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@cache
def _apart() -> tuple[str, ...]:
    """The command before one that shall reach no network and no process of others; Linux only."""
    words = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    words += ("sh", "-c", 'ip link set lo up; exec "$@"', "apart")
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        print("unshare cannot cut tests off from the network and other processes here")
        return ()
    return words
