"""The command ``dovetail verilog``."""

from pathlib import Path

import click

from .output import clear_errors, human, json_option, print_json, progress, require_folder
from .paths import PATH

__all__ = ["verilog"]


@click.command()
@click.option(
    "--config", "config_name", default="zynq7020", help="NAME or FILE.toml.", show_default=True
)
@click.option("-o", "--output", type=PATH, required=True, help="FILE.v")
@json_option
@clear_errors
def verilog(config_name: str, output: Path, as_json: bool) -> None:
    """Write the accelerator as Verilog."""
    from dovetail.isa.configs import find_config
    from dovetail.runtime.files import write_whole
    from dovetail.vta_hw.verilog import emit_verilog

    require_folder(output)
    config = find_config(config_name)
    with progress(f"generating {config.name}"):
        text = emit_verilog(config)
    write_whole(output, text.encode())
    top, lines = f"dovetail_{config.name}", text.count("\n")
    if as_json:
        values = {"output": str(output), "configuration": config.name, "top": top, "lines": lines}
        print_json({**values, "bytes": len(text.encode())})
    else:
        human.print(f"{output}: top module {top}, {lines:,} lines")
