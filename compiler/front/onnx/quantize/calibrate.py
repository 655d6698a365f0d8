"""A float model made ready, and the range of each of its tensors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import numpy as np

from dovetail.isa.frozen import frozen

from ....errors import CalibrationError, ModelError
from ....quantize.data import Dataset
from ....quantize.signature import Sample, fitted
from .coordinates import coordinates
from .equalize import equalize
from .evaluate import Evaluator
from .joins import unlike_joins
from .masks import Scores
from .model import FloatModel
from .observe import Observer, Range
from .options import QuantizeOptions
from .plan import Plan, Role, plan
from .scales import Quantization, activation_scale
from .simplify import FoldConstants, simplify
from .written_caches import ReadWrittenCaches

__all__ = ["Calibrated", "Decision", "calibrate", "tensors_of"]

SCALE_256 = 255 / 256
FIXED_RANGES = {"Sigmoid": (0.0, SCALE_256), "Softmax": (0.0, SCALE_256), "Tanh": (-1.0, 127 / 128)}
"""Ranges that the operator decides, not the data."""


@frozen
class Decision:
    """Operators that become integers, and the scale of every quantised tensor."""

    plan: Plan
    scales: Mapping[str, Quantization]


@frozen
class Calibrated:
    """A simplified float model, and what was seen of it.

    shapes, dtypes: of every tensor.  ranges: of the tensors that decide
    them.  whole: with nothing kept float.  samples: how many were seen.
    held: some of them, if there is something to correct by them.
    """

    model: FloatModel
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    ranges: Mapping[str, Range]
    whole: Plan
    samples: int
    held: tuple[Sample, ...]

    def decide(self, keep: frozenset[str] = frozenset()) -> Decision:
        """Quantise all but the nodes named ``keep``, coordinates, and joins whose operands are too
        unlike.

        Raises ModelError when there is no such node, or nothing to quantise.
        """
        kept = self._named(keep)
        decided = self._without(kept)
        for found in (
            coordinates(self.model, decided),
            unlike_joins(self.model, decided, self.ranges),
        ):
            kept = found | kept
        if kept:
            decided = self._without(kept)
        _require_contraction(decided)
        seen = {name: self._range(name) for name in decided.calibrated(self.model)}
        ranges: dict[str, Range] = {}
        for name, (low, high) in decided.scores.limited(seen).items():
            group = decided.group[name]
            before = ranges.get(group, (0.0, 0.0))
            ranges[group] = (min(before[0], low), max(before[1], high))
        chosen = {group: activation_scale(limits) for group, limits in ranges.items()}
        return Decision(decided, {name: chosen[group] for name, group in decided.group.items()})

    def _named(self, keep: frozenset[str]) -> dict[str, str]:
        """First outputs of the nodes named ``keep``, and the reason to keep each float."""
        unknown = sorted(keep - {node.name for node in self.model.nodes})
        if unknown:
            known = ", ".join(n.name for n in self.model.nodes if n.outputs[0] in self.whole.roles)
            raise ModelError(f"no node {unknown[0]!r} to keep float; there are {known}")
        kept = [node.outputs[0] for node in self.model.nodes if node.name in keep]
        return dict.fromkeys(kept, "it is kept float")

    def _without(self, kept: Mapping[str, str]) -> Plan:
        if not kept:
            return self.whole
        return plan(self.model, dict(self.shapes), _floats(self.dtypes), kept)

    def _range(self, name: str) -> Range:
        """The range that was seen, by one of its group for what was only passed on."""
        if name in self.ranges:
            return self.ranges[name]
        group = self.whole.group[name]
        found = [self.ranges[each] for each in self.ranges if self.whole.group[each] == group]
        return min(low for low, _ in found), max(high for _, high in found)


def calibrate(
    read: FloatModel,
    samples: Iterable[Sample],
    options: QuantizeOptions,
    progress: Callable[[int], None] | None = None,
) -> Calibrated:
    """Simplify a model and run it on samples; ``progress``: called with the number of those done.

    Raises ModelError for a model with nothing to quantise, CalibrationError for samples that do
    not fit it.
    """
    if not isinstance(samples, Dataset):  # whose files were fitted as they were read
        samples = fitted(samples, read.inputs)
    samples, held = _held(samples, options)
    chosen = islice(samples, options.samples)
    first = next(chosen, None)
    if first is None:
        raise CalibrationError("no calibration data; required at least one sample")
    shapes, dtypes = tensors_of(read, first)
    joined = ReadWrittenCaches(shapes).run(FoldConstants(shapes).run(read))
    if joined.nodes != read.nodes:
        read = joined
        shapes, dtypes = tensors_of(read, first)
    merge = options.per_channel and options.weight_bits == 8
    simple = simplify(read, shapes, dtypes, merge=merge)
    more, dtypes = tensors_of(simple, first)
    shapes |= more
    if options.equalize:
        simple = equalize(simple, shapes, held)
        shapes |= {name: array.shape for name, array in simple.constants.items()}
    whole = plan(simple, shapes, _floats(dtypes))
    _require_contraction(whole)
    observers = {name: Observer() for name in whole.calibrated(simple)}
    for name in observers.keys() & simple.constants.keys():
        observers[name].see(whole.scores.seen(name, simple.constants[name]))
    evaluator, count = Evaluator(simple), 0
    for sample in _chained(first, chosen):
        _observe(evaluator, sample, count, observers, whole.scores)
        count += 1
        if progress:
            progress(count)
    ranges = {}
    for name, observer in observers.items():
        producer = simple.producers.get(name)
        fixed = FIXED_RANGES.get(producer.kind) if producer else None
        ranges[name] = fixed or observer.range(options)
    return Calibrated(simple, shapes, dtypes, ranges, whole, count, held)


def tensors_of(
    model: FloatModel, sample: Sample
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """The shape and the element type of every tensor."""
    shapes, dtypes = {}, {}
    for name, array in (*model.constants.items(), *Evaluator(model).run(sample)):
        shapes[name], dtypes[name] = np.shape(array), str(np.asarray(array).dtype)
    return shapes, dtypes


def _floats(dtypes: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, dtype in dtypes.items() if dtype == "float32")


def _require_contraction(decided: Plan) -> None:
    if not any(role is Role.CONTRACTION for role in decided.roles.values()):
        reasons = "; ".join(f"{node}: {reason}" for node, reason in decided.kept[:3])
        reasons = reasons or "the model has none"
        raise ModelError(f"no convolution or matrix product can be quantised: {reasons}")


def _held(
    samples: Iterable[Sample], options: QuantizeOptions
) -> tuple[Iterable[Sample], tuple[Sample, ...]]:
    """The samples again, and those that corrections need, evenly spread."""
    if not (options.equalize or options.correct_bias or options.adaptive):
        return samples, ()
    if isinstance(samples, Dataset):
        return samples, tuple(samples.spread(options.held))
    every = list(islice(samples, options.samples))
    count = min(options.held, len(every))
    return every, tuple(every[place * len(every) // count] for place in range(count))


def _chained(first: Sample, others: Iterator[Sample]) -> Iterator[Sample]:
    yield first
    yield from others


def _observe(
    evaluator: Evaluator,
    sample: Sample,
    number: int,
    observers: dict[str, Observer],
    scores: Scores,
) -> None:
    for name, array in evaluator.run(sample):
        if name not in observers:
            continue
        array = scores.seen(name, array)
        if not np.isfinite(array).all():
            raise CalibrationError(
                f"tensor {name!r} has a NaN or infinity for sample {number}; required finite values"
            )
        observers[name].see(array)
