"""``python -m tests.mutants_code --count 100 --seed 1``: a sample of faults, and who notices."""

import json
import random
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from .faults import Fault, faults
from .neighbours import mirrored, nearest, production
from .reach import Reach
from .workplace import ENDED, Workplace

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
MIRRORED, ASKED = 5, 3
"""Test files at most: those that mirror the file and run first, and others that are asked then."""
BROAD = (
    "tests/compiler/debug/test_sound_networks.py",
    "tests/conformance/test_meanings.py",
    "tests/end_to_end/test_networks.py",
    "tests/random_models/test_found.py",
)
"""Test files that reach much, wherever a file stands; they are asked then too."""
FIRST, THEN = 40.0, 25.0
"""CPU seconds at most: of the tests that run first, and those of which the others are chosen."""
HARDWARE = ("bitstreams/", "isa/", "vta_hw/", "vta_sim/")
BUILDING = 90.0
"""CPU seconds more for tests that build what the fault is in: Verilog, the simulator."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fault, the lines it changes, the test that notices it ("" for none), and the test files
    that were tried."""

    fault: Fault
    before: str
    after: str
    by: str
    tried: list[str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is, wherever its line stands."""
        return self.fault.path, self.before, self.after


def sample(root: Path, seed: int, within: str = "") -> Iterator[Fault]:
    """Faults without end: first a line is drawn of all that can have one, then a kind, then one."""
    lines: dict[tuple[str, int], list[Fault]] = defaultdict(list)
    for path in (path for path in production(root) if path.startswith(within)):
        for fault in faults(path, (root / path).read_bytes()):
            lines[path, fault.line].append(fault)
    places, rng = list(lines), random.Random(seed)
    while True:
        there = lines[rng.choice(places)]
        kind = rng.choice(sorted({fault.kind for fault in there}))
        yield rng.choice([fault for fault in there if fault.kind == kind])


def mirroring(root: Path, path: str) -> list[str]:
    """The tests that mirror a file: of those of a folder, the ones with the fewest imports
    between."""
    near, own = nearest(root, path), mirrored(root, path)
    return own if len(own) == 1 else sorted({*own} & {*near}, key=near.index)[:MIRRORED]


def judge(reach: Reach, fault: Fault, narrow: bool) -> Verdict:
    """Run the tests that mirror the file with the fault in it, then, unless ``narrow``, others that
    reach the line.
    """
    path = reach.place.tree / fault.path
    source = path.read_bytes()
    lines = range(fault.line, source.count(b"\n", 0, fault.end) + 2)
    tried = mirroring(reach.place.tree, fault.path)
    known = all(map(reach.knows, tried))
    more = BUILDING if fault.path.startswith(HARDWARE) else 0.0

    def failing(tests: list[str], limit: float) -> str:
        try:
            path.write_bytes(fault.put_into(source))
            return reach.place.try_fault(tests, limit + more, not known) if tests else ""
        finally:
            path.write_bytes(source)

    first = _within(reach, fault.path, lines, tried) if known else tried
    by = failing(first, FIRST + sum(reach.seconds.get(test, 0) for test in first))
    by = by if by == ENDED or (by and reach.passes(by)) else ""
    if not by and not narrow:
        known = True
        near = [test for test in nearest(reach.place.tree, fault.path) if test not in tried]
        reach.record([*tried, *near[:ASKED], *BROAD])
        wider = [test for test in _within(reach, fault.path, lines) if test not in first]
        by = failing(wider, 15 + 3 * sum(reach.seconds[test] for test in wider))
        by = by if by == ENDED or (by and reach.passes(by)) else ""
        tried = sorted({*tried, *(test.split("::")[0] for test in wider)})
    return Verdict(fault, *fault.before_and_after(source), by, tried)


def _within(reach: Reach, path: str, lines: range, files: list[str] | None = None) -> list[str]:
    """Recorded tests, of some test files or of all, that reach the lines within some seconds."""
    chosen, left = list[str](), THEN
    for test in reach.tests(path, lines):
        if files is None or test.split("::")[0] in files:
            left -= reach.seconds[test]
            if left < 0:
                break
            chosen.append(test)
    return chosen


def table(verdicts: list[Verdict]) -> Table:
    """Noticed and unnoticed faults by part of the code."""
    noticed: Counter[str] = Counter()
    all_of: Counter[str] = Counter()
    for verdict in verdicts:
        for name in ("/".join(verdict.fault.path.split("/")[:-1][:2]), "all"):
            all_of[name] += 1
            noticed[name] += bool(verdict.by)
    found = Table("part", "faults", "noticed", "unnoticed")
    for name in sorted(all_of, key=lambda each: (each == "all", each)):
        count, seen = all_of[name], noticed[name]
        found.add_row(name, str(count), f"{seen} ({seen / count:.0%})", str(count - seen))
    return found


def read(path: Path) -> list[Verdict]:
    """What was found before."""
    if not path.exists():
        return []
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    return [Verdict(**{**each, "fault": Fault(**each["fault"])}) for each in kept]


@click.command()
@click.option("--count", default=100, show_default=True, help="Faults, equivalent ones aside.")
@click.option("--seed", default=1, show_default=True)
@click.option("--within", default="", help="Faults in files whose paths begin so, as vta_hw/.")
@click.option("--again", is_flag=True, help="Try those again that nobody noticed.")
@click.option("--narrow", is_flag=True, help="Only the tests that mirror a file: soon done.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default="build/mutants",
    show_default=True,
    help="Where the copy of the tree and the results lie.",
)
def main(count: int, seed: int, within: str, again: bool, narrow: bool, folder: Path) -> None:
    """Put faults into the production code, one at a time, and run the tests that stand near.

    Results are kept in FOLDER/SEED.json, a line each; a second run goes on where the first ended.
    """
    place = Workplace(folder.resolve())
    place.folder.mkdir(parents=True, exist_ok=True)
    place.prepare(ROOT)
    equivalent = {
        (each["path"], each["before"], each["after"])
        for each in tomllib.loads(EQUIVALENT.read_text()).get("fault", [])
    }
    kept = folder / f"{seed}.json"
    verdicts = {verdict.key: verdict for verdict in read(kept)}
    sampled: dict[tuple[str, str, str], Verdict] = {}
    reach, console = Reach(place), Console(highlight=False, soft_wrap=True)
    for fault in sample(ROOT, seed, within):
        if len(sampled) == count:
            break
        key = (fault.path, *fault.before_and_after((ROOT / fault.path).read_bytes()))
        if key in equivalent or key in sampled:
            continue
        if key not in verdicts or (again and not verdicts[key].by):
            verdicts[key] = judge(reach, fault, narrow)
            lines = [json.dumps(asdict(each)) for each in verdicts.values()]
            kept.write_text("".join(f"{line}\n" for line in lines))
            console.print(f"{fault.path}:{fault.line} {verdicts[key].by or 'nobody'}", markup=False)
        sampled[key] = verdicts[key]
    for verdict in sampled.values():
        if not verdict.by:
            where = f"{verdict.fault.path}:{verdict.fault.line}"
            console.print(f"{where}: {verdict.fault.kind}; tried {', '.join(verdict.tried)}")
            console.print(f"- {verdict.before}\n+ {verdict.after}", markup=False)
    console.print(table(list(sampled.values())))


if __name__ == "__main__":
    main()
