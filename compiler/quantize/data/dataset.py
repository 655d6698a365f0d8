"""Samples that are read when they are asked for, any number of times, and their labels."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from dovetail.isa.frozen import frozen

from ...errors import CalibrationError
from ...graph.ir import Array
from ..signature import Sample

__all__ = ["Dataset", "Source"]


@frozen
class Source:
    """A file, or a part of one: ``count`` samples.

    read: the samples at the given places, in order.  name: of the file, in its folder.
    """

    name: str
    count: int
    read: Callable[[Sequence[int]], Iterator[Sample]]


@frozen
class Dataset:
    """Samples of all sources, one after the other; none is held.

    labels: one for each sample, or None.  classes: names of the labels by number, where they have
    names.  chosen: places of the samples that count; None is all.
    """

    sources: tuple[Source, ...]
    labels: Array | None = None
    classes: tuple[str, ...] = field(default=())
    chosen: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """The number of samples."""
        return self._total if self.chosen is None else len(self.chosen)

    def __iter__(self) -> Iterator[Sample]:
        """Each sample, read again.  Raises CalibrationError for one that does not fit."""
        wanted = np.arange(self._total) if self.chosen is None else np.array(self.chosen, np.int64)
        ends = np.cumsum([source.count for source in self.sources])
        parts = np.split(wanted, np.searchsorted(wanted, ends[:-1]))
        for source, end, part in zip(self.sources, ends, parts, strict=True):
            if part.size:
                yield from source.read((part - (end - source.count)).tolist())

    def spread(self, count: int | None) -> "Dataset":
        """At most ``count`` of the samples, evenly spread: files are sorted by class."""
        total = len(self)
        if count is None or count >= total:
            return self
        places = np.arange(count) * total // count
        before = np.arange(total) if self.chosen is None else np.array(self.chosen)
        labels = None if self.labels is None else self.labels[places]
        return replace(self, labels=labels, chosen=tuple(before[places].tolist()))

    def labelled(self, labels: Array, classes: Sequence[str] = ()) -> "Dataset":
        """With one label for each sample.  Raises CalibrationError when their numbers differ."""
        if len(labels) != len(self):
            raise CalibrationError(
                f"{len(labels)} labels for {len(self)} samples; required one for each"
            )
        return replace(self, labels=labels, classes=tuple(classes))

    @property
    def _total(self) -> int:
        return sum(source.count for source in self.sources)
