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
from .neighbours import judging, mirrored, nearest, production, sweeping
from .reach import Reach
from .workplace import ENDED, Workplace

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
MIRRORED, NEAREST, WIDER = 30, 4, 16
"""Test files at most that are always asked: those that mirror the faulty file, and those that
import it; more of these where no other reaches the line.  Those about all of its folder are asked
too."""
BROAD = (
    "tests/conformance/test_meanings.py",
    "tests/random_models/test_found.py",
    "tests/random_models/test_graphs.py",
)
"""Test files that reach much, wherever a file stands; they are asked too."""
FIRST, THEN = 20.0, 25.0
"""CPU seconds at most: of tests in files that mirror the faulty one, and of others."""
HARDWARE = ("bitstreams/", "isa/", "vta_hw/", "vta_sim/")
BUILDING = 100.0
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
        """The fault's identity, wherever its line stands."""
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


def chosen(reach: Reach, fault: Fault, source: bytes, narrow: bool = False) -> list[str]:
    """The tests to try, within some seconds: first those that reach the line, of files that mirror
    the faulty one, then of others, one of each in turn; last, others of the same test files.

    narrow: only of files that mirror the faulty one."""
    lines = range(fault.line, source.count(b"\n", 0, fault.end) + 2)
    near = nearest(reach.place.tree, fault.path)
    own = mirrored(reach.place.tree, fault.path)
    if len(own) > 1:
        own = [test for test in near if test in own][:MIRRORED]
    importing = [test for test in near if test not in own]
    for count in (NEAREST, WIDER):
        near = [*own, *sweeping(fault.path), *importing[:count], *BROAD]
        near = list(dict.fromkeys(own if narrow and own else near))
        for _ in reach.record(near):
            pass
        reaching = reach.tests(fault.path, lines)
        if narrow:
            reaching = {test: there for test, there in reaching.items() if _file(test) in near}
        if any(reaching.values()):
            break
    if not any(reaching.values()):
        reaching = {test: True for test in reach.seconds if _file(test) in near}
    turn: Counter[tuple[str, bool]] = Counter()
    ranked = []
    for test in sorted(reaching, key=lambda test: (reach.seconds[test], test)):
        file = _file(test)
        turn[file, reaching[test]] += 1
        place = turn[file, reaching[test]]
        ranked.append((not reaching[test], file not in own, place, reach.seconds[test], test))
    more = BUILDING if fault.path.startswith(HARDWARE) else 0.0
    left = {False: FIRST + more, True: THEN + more}
    found = []
    for _, far, _, seconds, test in sorted(ranked):
        if seconds <= left[far]:
            left[far] -= seconds
            found.append(test)
    return found


def _file(test: str) -> str:
    return test.split("::")[0]


def judge(reach: Reach, fault: Fault, narrow: bool = False) -> Verdict:
    """Run the tests that are chosen with the fault in the file."""
    path = reach.place.tree / fault.path
    source = path.read_bytes()
    tests = chosen(reach, fault, source, narrow)
    limit = 15 + 3 * sum(reach.seconds[test] for test in tests)
    limit += BUILDING if fault.path.startswith(HARDWARE) else 0.0
    try:
        path.write_bytes(fault.put_into(source))
        by = reach.place.try_fault(tests, limit) if tests else ""
    finally:
        path.write_bytes(source)
    by = by if by == ENDED or (by and reach.passes(by)) else ""
    tried = sorted({_file(test) for test in tests})
    return Verdict(fault, *fault.before_and_after(source), by, tried)


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
    """Verdicts found before."""
    if not path.exists():
        return []
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    return [Verdict(**{**each, "fault": Fault(**each["fault"])}) for each in kept]


@click.command()
@click.option("--count", default=100, show_default=True, help="Faults, equivalent ones aside.")
@click.option("--seed", default=1, show_default=True)
@click.option("--within", default="", help="Faults in files whose paths begin so, as vta_hw/.")
@click.option("--again", is_flag=True, help="Try those again that nobody noticed.")
@click.option("--narrow", is_flag=True, help="Ask only tests that mirror the faulty file.")
@click.option("--all", "everything", is_flag=True, help="Ask all tests, not those that stand near.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default="build/mutants",
    show_default=True,
    help="Where the copy of the tree and the results lie.",
)
def main(
    count: int, seed: int, within: str, again: bool, narrow: bool, everything: bool, folder: Path
) -> None:
    """Put faults into the production code, one at a time, and run tests that reach the line.

    Which tests reach which lines is recorded first, and kept: of tests that stand near the files
    with faults, or with --all of the whole suite, which takes twice as long as the suite.  Results
    are kept in FOLDER/SEED.json, a line each; a second run goes on where the first ended.
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
    reach, console = Reach(place), Console(highlight=False, soft_wrap=True)
    drawn = dict[tuple[str, str, str], Fault]()
    for fault in sample(ROOT, seed, within):
        if len(drawn) == count:
            break
        key = (fault.path, *fault.before_and_after((ROOT / fault.path).read_bytes()))
        if key not in equivalent:
            drawn.setdefault(key, fault)
    asked = judging(ROOT) if everything else []
    for some in reach.record(asked):
        console.print(f"recording {some[0]} and {len(some) - 1} more", markup=False)
    for key, fault in drawn.items():
        if key not in verdicts or (again and not verdicts[key].by):
            verdicts[key] = judge(reach, fault, narrow)
            lines = [json.dumps(asdict(each)) for each in verdicts.values()]
            kept.write_text("".join(f"{line}\n" for line in lines))
            console.print(f"{fault.path}:{fault.line} {verdicts[key].by or 'nobody'}", markup=False)
    sampled = [verdicts[key] for key in drawn]
    for verdict in sampled:
        if not verdict.by:
            where = f"{verdict.fault.path}:{verdict.fault.line}"
            console.print(f"{where}: {verdict.fault.kind}; tried {', '.join(verdict.tried)}")
            console.print(f"- {verdict.before}\n+ {verdict.after}", markup=False)
    console.print(table(sampled))


if __name__ == "__main__":
    main()
