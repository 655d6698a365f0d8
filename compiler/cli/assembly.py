"""The commands ``dovetail assemble`` and ``dovetail disassemble``."""

from pathlib import Path

import click

from .output import clear_errors, human, json_option, print_json, require_folder
from .paths import PATH

__all__ = ["assemble", "disassemble"]


@click.command()
@click.argument("file", type=PATH)
@click.option("-o", "--output", type=PATH, help="Default: standard output.")
@json_option
@clear_errors
def disassemble(file: Path, output: Path | None, as_json: bool) -> None:
    """Print the program of FILE (.dvt, or the bytes of instructions) as assembly."""
    from dovetail.isa.assembly import disassemble as to_text
    from dovetail.isa.program import program_from_bytes
    from dovetail.runtime.files import write_whole

    from .programs import read_code

    text = to_text(program_from_bytes(read_code(file)))
    if output:
        write_whole(output, text.encode())
    if as_json:
        place = {"output": str(output)} if output else {}
        print_json({"file": str(file), **place, "assembly": text.splitlines()})
    elif not output:
        click.echo(text, nl=False)


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--config", "config_name", default="zynq7020", help="NAME or FILE.toml.", show_default=True
)
@click.option("-o", "--output", type=PATH, required=True, help="FILE.bin")
@json_option
@clear_errors
def assemble(file: Path, config_name: str, output: Path, as_json: bool) -> None:
    """Assemble FILE to the bytes of its instructions."""
    from dovetail.isa.config import INSTRUCTION_BYTES
    from dovetail.isa.configs import find_config
    from dovetail.runtime.files import write_whole

    from .programs import assemble_file

    require_folder(output)
    config = find_config(config_name)
    code = assemble_file(file, config)
    write_whole(output, code)
    count = len(code) // INSTRUCTION_BYTES
    if as_json:
        values = {"output": str(output), "configuration": config.name, "instructions": count}
        print_json({**values, "bytes": len(code)})
    else:
        human.print(f"{output}: {count} instructions for {config.name}")
