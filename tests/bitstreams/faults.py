"""Faults on the link and of the board, thousands of them: ``make faults``.

The real driver runs random copies on the emulated board while bytes are lost and damaged, the board
is reset or loses its power at any moment, hosts die within a frame, and noise fills its buffer.
Every run must give the simulator's bytes and counters, or one clear error; after an error, the same
driver must come back.
"""

import argparse
import random
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from dovetail.bitstreams.emulator import Emulator
from dovetail.isa.instructions import Load, Store
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.runtime.board.device import BoardDevice
from dovetail.runtime.board.link import Link
from dovetail.runtime.errors import DeviceError
from dovetail.vta_sim.device import SimulatorDevice

from .boards import SMALL_BOARD, device_name

__all__ = ["campaign"]

RUNS = 24
"""Runs of a campaign."""
LONGEST = 0.4
"""Seconds from the start of a run to a misfortune, at most."""


def campaign(seed: int, runs: int = RUNS) -> Counter[str]:
    """Run one emulated board through its misfortunes.

    Returns counts of: faults (of bytes, and others), right, errors, wrong.
    """
    draw = random.Random(seed)
    rate = draw.choice([500, 2_000, 4_000])
    found: Counter[str] = Counter()
    with Emulator(SMALL_BOARD, garbage=True, seed=seed, drop=rate, flip=rate) as emulator:
        name = device_name(emulator.port)
        board = BoardDevice(name, patience=0.02, chunk=64)
        for _ in range(runs):
            launch = _launch(draw)
            misfortune = draw.choice(["none", "reset", "power", "death", "noise"])
            found["faults"] += misfortune != "none"
            later = threading.Timer(
                draw.uniform(0, LONGEST), _happen, (misfortune, emulator, board, draw.random())
            )
            later.start()
            try:
                result = board.run(launch)
            except DeviceError:
                found["errors"] += 1
            else:
                wrong = _difference(result, SimulatorDevice().run(launch))
                found["wrong" if wrong else "right"] += 1
                if wrong:
                    print(f"seed {seed}, {misfortune}: {wrong}", flush=True)
            later.join()
        board.close()
    found["faults"] += emulator.faults
    return found


def _difference(found: LaunchResult, expected: LaunchResult) -> str:
    """Bytes and counters that differ; empty when none do."""
    places = np.flatnonzero(found.dram != expected.dram)
    counters = {
        name: (found.counters[name], value)
        for name, value in expected.counters.items()
        if found.counters[name] != value
    }
    return f"bytes {places}, counters {counters}" if places.size or counters else ""


def _happen(misfortune: str, emulator: Emulator, board: BoardDevice, chance: float) -> None:
    """Let it happen; while a run goes on, or just after."""
    if misfortune == "reset":
        emulator.reset()
    elif misfortune == "power":
        emulator.cycle_power()
    elif misfortune in ("death", "noise"):
        # Another host's bytes among those of this one: half a request, or more than buffers hold.
        size = 20 if misfortune == "death" else 1500
        with Link(emulator.port, SMALL_BOARD.baud) as other:
            other._port.write(random.Random(chance).randbytes(size))


def _launch(draw: random.Random) -> Launch:
    """A copy of random bytes from a random place to another."""
    words = draw.randrange(1, 65)
    program = (
        Load(
            memory=Memory.ACT,
            dram_address=8 * draw.randrange(16),
            sram_address=0,
            count_x=words,
            post=frozenset({Unit.STORE}),
        ),
        Store(
            dram_address=1024 + 8 * draw.randrange(16),
            sram_address=0,
            count_x=words,
            wait=frozenset({Unit.LOAD}),
        ),
    )
    dram = np.frombuffer(draw.randbytes(2048), np.uint8).copy()
    code = np.frombuffer(program_to_bytes(program), np.uint8)
    first = 1792
    dram[first : first + code.size] = code
    return Launch(SMALL_BOARD.config, dram, first, len(program), 100_000)


def main() -> None:
    """Run campaigns until there were enough faults; fail when a result was wrong."""
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    start, total, seed = time.monotonic(), Counter[str](), arguments.seed
    with ProcessPoolExecutor(arguments.jobs) as pool:
        while total["faults"] < arguments.faults:
            for found in pool.map(campaign, range(seed, seed + 4 * arguments.jobs)):
                total += found
            seed += 4 * arguments.jobs
            print(dict(total), flush=True)
    runs = total["right"] + total["errors"] + total["wrong"]
    print(
        f"{total['faults']} faults in {runs} runs: {total['right']} right, {total['errors']} with "
        f"a clear error, {total['wrong']} wrong; {time.monotonic() - start:.0f} s"
    )
    sys.exit(bool(total["wrong"]))


if __name__ == "__main__":
    main()
