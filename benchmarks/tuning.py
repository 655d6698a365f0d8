"""How well tuning searches: evolution with a learned model beside random search, and the model by
itself.

    python benchmarks/tuning.py --trials 100 --seeds 3 --picture docs/pictures/tuning.svg \\
        --folder FOLDER

On some kernels of ResNet-18 and MobileNetV2 both search for as many trials, in turn, and neither
knows the default schedule; the picture shows the best time so far over the default's, the geometric
mean of all seeds.  FOLDER has the trials.jsonl that
``dovetail tune`` wrote: a fifth of it is held out, and predicted by a model of the others.
"""

import json
import random
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import onnx
from cpu_models import model_file
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dovetail.compiler.tune.kernel import Setting
from dovetail.compiler.tune.kernel_space import KernelProblem
from dovetail.compiler.tune.model import CostModel, rank_correlation
from dovetail.compiler.tune.problem import Candidate, Job
from dovetail.compiler.tune.search import RandomSearch, Search
from dovetail.compiler.tune.trials import TRIALS, Trial, read_trials
from dovetail.compiler.tune.variants import layers_of
from dovetail.compiler.tune.workers import LocalWorkers

KERNELS = {
    "3x3 / 2, 128 to 256 channels, 28x28": ("resnet18", "float32[16, 8, 3, 3, 16, 16]"),
    "1x1 / 2, 64 to 128 channels, 56x56": ("resnet18", "float32[8, 4, 1, 1, 16, 16]"),
    "depthwise 3x3, 144 channels, 56x56": ("mobilenet_v2", "[9, 3, 3, 16] -> float32[1, 9, 56, 56"),
}
"""Network, and a part of the kernel's title."""
GOALS = (1.2, 1.05, 1.0)
"""Times over the default's, until which trials are counted."""
SHOWN = 3.0
"""The largest time over the default's in the picture."""
STRATEGIES = {"evolution, learned model": Search, "random": RandomSearch}
COLORS = ("#1f6fb4", "#c0504d")
BATCH = 4
HELD_OUT = 0.2
LEAST = 10
"""Held-out records of a kernel, for a correlation within it."""
NEVER = 1e3
WIDTH, HEIGHT, MARGIN = 300, 210, 44

Curves = dict[str, dict[str, list[list[float]]]]
"""Of each kernel and strategy, for each seed, the best ratio after each trial."""


def search(problem: KernelProblem, strategy: str, trials: int, seed: int) -> list[float]:
    """The best ratio to the default after each trial."""
    found = STRATEGIES[strategy](problem, CostModel(), random.Random(seed), from_default=False)
    workers: LocalWorkers[Candidate] = LocalWorkers(1, 20.0)
    best, curve = NEVER, list[float]()
    waiting: deque[Candidate] = deque()

    def request() -> tuple[Candidate, Job] | None:
        if not waiting and len(curve) < trials:
            waiting.extend(found.propose(BATCH))
        candidate = waiting.popleft() if waiting else None
        return None if candidate is None else (candidate, problem.job(candidate))

    for candidate, measured in workers.run(request):
        found.tell(candidate, measured)
        best = min(best, measured.ratio or best)
        curve.append(best)
    workers.close()
    return (curve + [best] * trials)[:trials]


def needed(curves: Sequence[Sequence[float]], ratio: float) -> float:
    """Trials until a ratio is reached, the mean of the seeds; those that do not get there count
    as all and one more.
    """
    counts = [
        next((number for number, each in enumerate(curve, 1) if each <= ratio), len(curve) + 1)
        for curve in curves
    ]
    return float(np.mean(counts))


def correlations(trials: Sequence[Trial]) -> tuple[float, float, int, int]:
    """Of held-out records, over all and the mean within kernels; records, and kernels of the mean.

    All are of one setting.
    """
    measured = [each for each in trials if each.measured.ratio is not None and each.features]
    random.Random(0).shuffle(measured)
    count = int(len(measured) * HELD_OUT)
    model = CostModel()
    for each in measured[count:]:
        model.add(np.array(each.features, np.float32), each.measured.ratio or 1.0)
    held = measured[:count]
    scores = model.predict([np.array(each.features, np.float32) for each in held])
    assert scores is not None
    truth = [each.measured.ratio or 1.0 for each in held]
    groups: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(held):
        groups[each.key].append(number)
    within = [
        rank_correlation([scores[n] for n in own], [truth[n] for n in own])
        for own in groups.values()
        if len(own) >= LEAST
    ]
    mean = float(np.mean(within)) if within else 0.0
    return rank_correlation(list(scores), truth), mean, count, len(within)


def picture(curves: Curves) -> str:
    """An SVG with one plot for each kernel."""
    parts = []
    for place, (title, strategies) in enumerate(curves.items()):
        means = {name: geometric(own) for name, own in strategies.items()}
        low = 0.9 * min(float(mean.min()) for mean in means.values())
        count = max(len(mean) for mean in means.values())
        left, top = place * (WIDTH + MARGIN) + MARGIN, 40

        def height(value: float, low: float = low, top: float = top) -> float:
            return float(top + HEIGHT * np.log(SHOWN / value) / np.log(SHOWN / low))

        parts.append(f'<text x="{left}" y="{top - 14}" font-weight="bold">{title}</text>')
        for value in (3.0, 2.0, 1.5, 1.2, 1.0, 0.8, 0.6, 0.4):
            if value >= low:
                y = height(value)
                parts.append(
                    f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
                    f'stroke="{"#888" if value == 1 else "#ddd"}"/>'
                    f'<text x="{left - 4}" y="{y + 4:.1f}" text-anchor="end">{value:.1f}</text>'
                )
        for number in range(0, count + 1, max(1, count // 4)):
            x = left + WIDTH * number / count
            parts.append(
                f'<text x="{x:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{number}</text>'
            )
        for color, mean in zip(COLORS, means.values(), strict=True):
            points = " ".join(
                f"{left + WIDTH * (n + 1) / count:.1f},{height(min(y, SHOWN)):.1f}"
                for n, y in enumerate(mean)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
    width, height_of_all = len(curves) * (WIDTH + MARGIN) + MARGIN, HEIGHT + 96
    for place, (color, name) in enumerate(zip(COLORS, STRATEGIES, strict=True)):
        x, y = MARGIN + 240 * place, height_of_all - 12
        parts.append(
            f'<line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" '
            f'stroke-width="2"/><text x="{x + 30}" y="{y}">{name}</text>'
        )
    x = MARGIN + 240 * len(STRATEGIES)
    said = "best time so far over the default schedule's, by trials"
    parts.append(f'<text x="{x}" y="{height_of_all - 12}">{said}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height_of_all}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def geometric(curves: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """The mean of the seeds after each trial."""
    return np.asarray(np.exp(np.mean(np.log(np.array(curves)), axis=0)), np.float64)


def report(curves: Curves, console: Console) -> None:
    """The best of each, and the trials until some times over the default's."""
    result = Table(title="best time over the default's, and trials until it is at most ...")
    for heading in ("kernel", "search", "best", *map(str, GOALS)):
        result.add_column(heading, justify="left" if heading in ("kernel", "search") else "right")
    for title, strategies in curves.items():
        for name, own in strategies.items():
            counts = (needed(own, goal) for goal in GOALS)
            result.add_row(
                title, name, f"{geometric(own)[-1]:.3f}", *(f"{count:.0f}" for count in counts)
            )
    console.print(result)


@click.command()
@click.option("--trials", default=64, show_default=True, help="Of each search.")
@click.option("--seeds", default=3, show_default=True)
@click.option("--picture", "picture_path", type=click.Path(path_type=Path), help="FILE.svg")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="The curves.")
@click.option(
    "--folder", "folders", multiple=True, type=click.Path(path_type=Path), help="Of tuning."
)
@click.option("--models", type=click.Path(path_type=Path), default=Path("build/networks"))
def main(
    trials: int,
    seeds: int,
    picture_path: Path | None,
    json_path: Path | None,
    folders: tuple[Path, ...],
    models: Path,
) -> None:
    """Compare searches, and predict held-out records."""
    console = Console(width=110)
    for folder in folders:
        by_setting: dict[str, list[Trial]] = defaultdict(list)
        for trial in read_trials(folder / TRIALS):
            by_setting[trial.setting].append(trial)
        for setting, own in by_setting.items():
            over_all, within, count, groups = correlations(own)
            console.print(
                f"{folder.name}, {setting}: rank correlation of {count} held-out records "
                f"{over_all:.3f}, within {groups} kernels {within:.3f} on average"
            )
    if not trials:
        return
    models.mkdir(parents=True, exist_ok=True)
    curves: Curves = {}
    for title, (network, part) in KERNELS.items():
        layers = layers_of(onnx.load(model_file(network, models)), {}, True)
        setting = Setting(constant_bytes=layers.constant_bytes)
        kernel = next(each for each in layers.kernels.values() if part in each.title)
        own: dict[str, list[list[float]]] = {name: [] for name in STRATEGIES}
        for seed in range(seeds):
            for name, found in own.items():
                found.append(search(KernelProblem(kernel, setting), name, trials, seed))
        curves[title] = own
    report(curves, console)
    if picture_path:
        picture_path.write_text(picture(curves), encoding="utf-8")
    if json_path:
        json_path.write_text(json.dumps(curves) + "\n")


if __name__ == "__main__":
    main()
