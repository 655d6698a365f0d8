"""The commands ``dovetail assemble`` and ``dovetail disassemble``."""

from pathlib import Path

import click

from .output import clear_errors, human, require_folder

__all__ = ["assemble", "disassemble"]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: standard output.")
@clear_errors
def disassemble(file: Path, output: Path | None) -> None:
    """Print the program of FILE (.dvt, or the bytes of instructions) as assembly."""
    from dovetail.isa.assembly import disassemble as to_text
    from dovetail.isa.program import program_from_bytes
    from dovetail.runtime.files import write_whole

    from .programs import read_code

    text = to_text(program_from_bytes(read_code(file)))
    if output:
        write_whole(output, text.encode())
    else:
        click.echo(text, nl=False)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@clear_errors
def assemble(file: Path, config_name: str, output: Path) -> None:
    """Assemble FILE to the bytes of its instructions."""
    from dovetail.isa.config import INSTRUCTION_BYTES
    from dovetail.isa.configs import find_config
    from dovetail.runtime.files import write_whole

    from .programs import assemble_file

    require_folder(output)
    config = find_config(config_name)
    code = assemble_file(file, config)
    write_whole(output, code)
    human.print(f"{output}: {len(code) // INSTRUCTION_BYTES} instructions for {config.name}")
