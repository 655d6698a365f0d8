"""How well tuning searches: evolution with a learned model beside random search, and the model by
itself.

    python benchmarks/tuning.py search --trials 40 --seeds 10 --picture docs/pictures/tuning.svg
    python benchmarks/tuning.py model FOLDER...

``search``: of each network one kernel that multiplies is drawn; both searches look for a schedule
with as many trials and seeds, and neither knows the default schedule.  Each program is measured
once (``tuning_values.py``), so that both have the same costs.  ``model``: FOLDER has the
trials.jsonl that ``dovetail tune`` wrote; a fifth of each kernel's programs is held out, and
predicted by a model of the others.  ``experience``: measures programs of networks at random, and
writes what comes with this project.
"""

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np
from cpu_models import model_file
from rich.console import Console
from rich.table import Table
from tuning_picture import Curves, picture, quartiles
from tuning_values import Values

from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.tune.experience import (
    SHIPPED,
    Experience,
    experience_of,
    shipped_experience,
    write_experience,
)
from dovetail.compiler.tune.kernel import Setting
from dovetail.compiler.tune.kernel_space import KernelProblem
from dovetail.compiler.tune.model import CostModel, rank_correlation
from dovetail.compiler.tune.problem import Candidate, Features
from dovetail.compiler.tune.search import RandomSearch, Search
from dovetail.compiler.tune.trials import TRIALS, Trial, read_trials
from dovetail.compiler.tune.variants import layers_of

NETWORKS = ("mobilenet_v1", "mobilenet_v3", "vgg16", "tiny_yolo", "bert")
"""Networks by which nothing of the search was chosen."""
STRATEGIES = {"evolution, learned model": Search, "random": RandomSearch}
GOALS = (1.1, 1.05, 1.02)
"""Times over the best that any search found, until which trials are counted."""
BATCH = 5
HELD_OUT = 0.2
LEAST = 8
"""Held-out programs of a kernel, for a correlation within it."""
NEVER = 1e3

console = Console(width=120)


@dataclass(slots=True)
class Running:
    """One search.  curve: the best ratio after each trial."""

    problem: KernelProblem
    search: Search
    waiting: list[Candidate] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)

    def take(self, values: Values) -> None:
        """Take the results that arrived."""
        for candidate in self.waiting:
            measured = values.of(self.problem, candidate)
            assert measured is not None
            self.search.tell(candidate, measured)
            best = self.curve[-1] if self.curve else NEVER
            self.curve.append(min(best, measured.ratio or best))
        self.waiting = []


def drawn_kernel(network: str, models: Path, draw: int) -> KernelProblem:
    """A kernel of a network that multiplies, not by Winograd's tiles, at random."""
    layers = layers_of(SourceModel.of(model_file(network, models)), {}, True)
    setting = Setting(constant_bytes=layers.constant_bytes)
    suited = sorted(key for key, own in layers.kernels.items() if own.title.startswith("Contract"))
    return KernelProblem(layers.kernels[random.Random(draw).choice(suited)], setting)


def compare(
    problems: Mapping[str, KernelProblem],
    values: Values,
    experience: Experience | None,
    trials: int,
    seeds: int,
) -> dict[str, dict[str, list[list[float]]]]:
    """The curves of all searches, which go on side by side."""
    running = {
        (title, name): [
            Running(
                problem,
                kind(
                    problem,
                    CostModel(experience),
                    random.Random(seed),
                    from_default=False,
                    hurried=False,
                ),
            )
            for seed in range(seeds)
        ]
        for title, problem in problems.items()
        for name, kind in STRATEGIES.items()
    }
    everything = [each for own in running.values() for each in own]
    while True:
        for each in everything:
            count = min(BATCH, trials - len(each.curve))
            each.waiting = each.search.propose(count) if count else []
        wanted = [(each.problem, one) for each in everything for one in each.waiting]
        if not wanted:
            break
        values.measure(wanted)
        for each in everything:
            each.take(values)
        console.print(f"{max(len(e.curve) for e in everything)} trials: {len(values.known)} values")
    curves: dict[str, dict[str, list[list[float]]]] = {title: {} for title in problems}
    for (title, name), own in running.items():
        curves[title][name] = [(e.curve + [e.curve[-1]] * trials)[:trials] for e in own]
    return curves


def needed(curves: Sequence[Sequence[float]], ratio: float) -> str:
    """Trials until a ratio is reached: the median of the seeds, and the quartiles."""
    count = len(curves[0])
    counts = [
        next((number for number, each in enumerate(curve, 1) if each <= ratio), count + 1)
        for curve in curves
    ]
    low, middle, high = (
        f"{x:.0f}" if x <= count else "never" for x in np.quantile(counts, (0.25, 0.5, 0.75))
    )
    return f"{middle} ({low}, {high})"


def report(curves: Curves) -> None:
    """The best of each, and the trials until some times over the best of all."""
    result = Table(title="best time over the default's, and trials until N times the best of all")
    for heading in ("kernel", "search", "median of best", *map(str, GOALS)):
        result.add_column(heading, justify="left" if heading in ("kernel", "search") else "right")
    for title, strategies in curves.items():
        least = min(curve[-1] for own in strategies.values() for curve in own)
        for name, own in strategies.items():
            counts = (needed(own, goal * least) for goal in GOALS)
            result.add_row(title, name, f"{quartiles(own)[1, -1]:.3f}", *counts)
    console.print(result)


def correlations(programs: Mapping[str, Sequence[Trial]]) -> tuple[float, float, int, int]:
    """Rank correlations on held-out programs: over all, and the mean within kernels; the numbers of
    programs, and of kernels in the mean.
    """
    model, rng = CostModel(), random.Random(0)
    held: dict[str, list[Trial]] = {}
    for key, own in programs.items():
        order = rng.sample(list(own), len(own))
        count = round(len(order) * HELD_OUT)
        held[key] = order[:count]
        for each in order[count:]:
            model.add(key, np.array(each.features, np.float32), each.measured.ratio or 1.0)
    scores, truth, within = list[float](), list[float](), list[float]()
    for key, own in held.items():
        if own:
            rows = [np.array(each.features, np.float32) for each in own]
            predicted = model.predict(key, rows)
            assert predicted is not None
            costs = [each.measured.ratio or 1.0 for each in own]
            scores += map(float, predicted)
            truth += costs
            if len(own) >= LEAST:
                within.append(rank_correlation(list(map(float, predicted)), costs))
    mean = float(np.mean(within)) if within else 0.0
    return rank_correlation(scores, truth), mean, len(truth), len(within)


def programs_of(trials: Sequence[Trial]) -> dict[str, dict[str, list[Trial]]]:
    """The programs that were measured, by setting and kernel."""
    found: dict[str, dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for each in trials:
        if each.measured.ratio is not None and each.features:
            found[each.setting][each.key].append(each)
    return found


@click.group()
def main() -> None:
    """Compare searches, and predict held-out records."""


@main.command()
@click.argument("networks", nargs=-1)
@click.option("--trials", default=40, show_default=True, help="Of each search.")
@click.option("--seeds", default=10, show_default=True)
@click.option("--draw", default=0, show_default=True, help="The seed that draws kernels.")
@click.option("--values", default="build/tuning/values.jsonl", type=click.Path(path_type=Path))
@click.option("--wrapper", multiple=True, help="Words of a command that measurements run by.")
@click.option("--picture", "picture_path", type=click.Path(path_type=Path), help="FILE.svg")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="The curves.")
@click.option("--models", type=click.Path(path_type=Path), default=Path("build/networks"))
def search(
    networks: tuple[str, ...],
    trials: int,
    seeds: int,
    draw: int,
    values: Path,
    wrapper: tuple[str, ...],
    picture_path: Path | None,
    json_path: Path | None,
    models: Path,
) -> None:
    """Compare searches on a kernel of each network."""
    models.mkdir(parents=True, exist_ok=True)
    values.parent.mkdir(parents=True, exist_ok=True)
    problems = {}
    for network in networks or NETWORKS:
        problem = drawn_kernel(network, models, draw)
        console.print(f"{network}: {problem.title}")
        problems[network] = problem
    known = Values(values, wrapper)
    curves = compare(problems, known, shipped_experience(), trials, seeds)
    report(curves)
    if picture_path:
        picture_path.write_text(picture(curves), encoding="utf-8")
    if json_path:
        json_path.write_text(json.dumps(curves) + "\n")


@main.command()
@click.argument("networks", nargs=-1, required=True)
@click.option("--count", default=24, show_default=True, help="Programs of a kernel.")
@click.option("--values", default="build/tuning/pool.jsonl", type=click.Path(path_type=Path))
@click.option("--wrapper", multiple=True, help="Words of a command that measurements run by.")
@click.option("--folder", "folders", multiple=True, type=click.Path(path_type=Path), help="Trials.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=SHIPPED)
@click.option("--models", type=click.Path(path_type=Path), default=Path("build/networks"))
def experience(
    networks: tuple[str, ...],
    count: int,
    values: Path,
    wrapper: tuple[str, ...],
    folders: tuple[Path, ...],
    output: Path,
    models: Path,
) -> None:
    """Measure programs of all kernels of networks at random, but for Winograd's; write them, and
    the trials of searches.
    """
    models.mkdir(parents=True, exist_ok=True)
    values.parent.mkdir(parents=True, exist_ok=True)
    known = Values(values, wrapper)
    for network in networks:
        layers = layers_of(SourceModel.of(model_file(network, models)), {}, True)
        setting = Setting(constant_bytes=layers.constant_bytes)
        for key, kernel in layers.kernels.items():
            if "Winograd" not in kernel.title:
                problem = KernelProblem(kernel, setting)
                drawn = RandomSearch(problem, CostModel(), random.Random(key), from_default=False)
                known.measure((problem, each) for each in drawn.propose(count))
        console.print(f"{network}: {len(known.known)} values")
    kernels: dict[str, list[tuple[Features, float]]] = defaultdict(list)
    for value in known.known.values():
        if value.measured.ratio is not None:
            kernels[value.key].append((np.array(value.features, np.float32), value.measured.ratio))
    for folder in folders:
        for own in programs_of(read_trials(folder / TRIALS)).values():
            for key, trials in own.items():
                for each in trials:
                    row = np.array(each.features, np.float32)
                    kernels[f"{folder} {key}"].append((row, each.measured.ratio or 1.0))
    found = experience_of({key: own for key, own in kernels.items() if len(own) >= LEAST})
    write_experience(output, found)
    console.print(f"{output}: {len(found.targets)} programs")


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def model(folders: tuple[Path, ...]) -> None:
    """Predict held-out programs of each folder of a search."""
    for folder in folders:
        for setting, kernels in programs_of(read_trials(folder / TRIALS)).items():
            over_all, within, count, groups = correlations(kernels)
            console.print(
                f"{folder.name}, {setting}: rank correlation of {count} held-out programs "
                f"{over_all:.3f}, within {groups} kernels {within:.3f} on average"
            )


if __name__ == "__main__":
    main()
