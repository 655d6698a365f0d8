"""Whole networks through driver, pseudo-terminal, serial bits, gateware and SDRAM model: ``make
board-networks``.

Exits with 1 when an output byte or a counter is not the simulator's.
"""

import time
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from dovetail.bitstreams.boards import BOARDS, Board, find_board
from dovetail.bitstreams.emulator import Emulator
from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime import run

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {
    "digits": ROOT / "examples" / "digits" / "digits_int8.onnx",
    "ic_resnet8": ROOT.parent / "shared/models/mlperf_tiny/ic_resnet8_int8.onnx",
}


CYCLES_A_BIT = 8
"""Cycles a bit of the emulated line: the fewest that the gateware takes."""


def compare(network: Path, board: Board) -> str:
    """One line about the network on the board, which ends in "equal" when it is."""
    board = replace(board, baud=board.config.clock_hz // CYCLES_A_BIT)
    module = compile(network, f"vta:{board.config.name}")
    inputs = random_inputs(module)
    expected = run(module, inputs, device="sim")
    with Emulator(board, garbage=True) as emulator:
        begin = time.perf_counter()
        device = f"board:emulated@{emulator.port},{board.baud}"
        first, again = (run(module, inputs, device=device) for _ in range(2))
        seconds = time.perf_counter() - begin
    same = all(
        np.array_equal(found.outputs[name], value)
        for found in (first, again)
        for name, value in expected.outputs.items()
    )
    counters = first.counters == again.counters == expected.counters
    return (
        f"{network.stem} on {board.name}: {expected.cycles:,} cycles on the simulator, "
        f"{first.cycles or 0:,} and {again.cycles or 0:,} on the board; {seconds:.0f} s: "
        f"{'equal' if same and counters else 'different'}"
    )


@click.command()
@click.argument("boards", nargs=-1)
def main(boards: tuple[str, ...]) -> None:
    """Compare on the BOARDS, or all."""
    failed = False
    for name in boards or BOARDS:
        for network in NETWORKS.values():
            if not network.is_file():
                print(f"{network.name}: not there, skipped")
                continue
            line = compare(network, find_board(name))
            print(line, flush=True)
            failed |= not line.endswith("equal")
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
