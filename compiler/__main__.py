"""The command ``dovetail``.

Each command is in ``cli``; packages that take long to import are imported by the commands that need
them.
"""

from typing import Any

import click

from .cli.assembly import assemble, disassemble
from .cli.benchmark.command import benchmark
from .cli.bitstream import bitstream
from .cli.check import check
from .cli.compile import compile_command
from .cli.completion import completion
from .cli.config import config
from .cli.convert import convert
from .cli.debug.command import debug
from .cli.devices import devices
from .cli.explore.command import explore
from .cli.export.command import export
from .cli.generate import generate
from .cli.inspect import inspect
from .cli.profile.command import profile
from .cli.quantize.command import quantize
from .cli.run import run
from .cli.sign import keygen, sign
from .cli.tune.command import tune
from .cli.validate import validate
from .cli.verilog import verilog

__all__ = ["main"]

COMMANDS = (
    *(assemble, benchmark, bitstream, check, compile_command, completion, config, convert, debug),
    *(devices, disassemble, explore, export, generate, inspect, keygen, profile, quantize, run),
    *(sign, tune, validate, verilog),
)


class _Commands(click.Group):
    """Commands whose help ends in one error, too, where it cannot be written: a disk is full."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """As click's, which only knows of pipes that nobody reads."""
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            if error.errno is None:
                raise
            click.ClickException(f"cannot write: {error.strerror}").show()
            raise SystemExit(1) from None


@click.group(
    cls=_Commands, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="dovetail")
def main() -> None:
    """Quantise networks, compile them for the Dovetail accelerator, CPUs or GPUs, and run them."""


if __name__ == "__main__":
    main()
