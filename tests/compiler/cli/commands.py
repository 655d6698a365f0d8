"""Commands run by tests, and a program for some of them."""

from click.testing import CliRunner, Result

from dovetail.compiler.__main__ import main

__all__ = ["PROGRAM", "invoke", "refused"]

PROGRAM = """
# copies twelve words through ACT
load  memory=act sram_address=0 dram_address=0 count_x=12 post=store
store sram_address=0 dram_address=64 count_x=12 wait=load
"""


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(result: Result, message: str, code: int = 1) -> None:
    """One error on standard error, the exit code, and nothing on standard output."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit), "a traceback"
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert message in " ".join(result.stderr.split())
