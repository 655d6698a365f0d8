"""Parts on a machine whose memory other libraries use, without copies."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..dlpack import VERSION, Borrowed, take
from .arena import size_of
from .part import GpuPart
from .run import ReadyPart
from .tensor import DeviceTensor, Lent, Mark, Pool, SharingMachine

__all__ = ["SharingPart"]

MOST_GATHERED = 8
"""Launches gathered for other memories than the part's own: of so many inputs and outputs."""
ALIGNED = 16
"""Bytes that a kernel reads at once, at most."""
DEFAULT_STREAM = 1
Given = tuple[list[Any], list[Borrowed]]
"""The memory of each input, and what others own of it."""


class SharingPart(ReadyPart):
    """See ``ReadyPart``."""

    _machine: SharingMachine

    def __init__(self, name: str, machine: SharingMachine, part: GpuPart) -> None:
        super().__init__(name, machine, part)
        self._pools: list[Pool] = [[] for _ in part.outputs]
        self._held: list[tuple[Mark, list[Borrowed]]] = []
        self._known: OrderedDict[tuple[int, ...], Callable[[], None] | None] = OrderedDict()

    def borrow(self, what: str, value: Any) -> Borrowed | None:
        """A tensor of this device, where it is, behind what its owner does to it; else None.

        Raises InputError for one that no kernel can read.
        """
        if tuple(value.__dlpack_device__()) != self._machine.dlpack_device:
            return None
        try:
            capsule = value.__dlpack__(stream=DEFAULT_STREAM, max_version=VERSION)
        except TypeError:
            capsule = value.__dlpack__(stream=DEFAULT_STREAM)
        return take(what, capsule)

    def run_on_device(self, inputs: Mapping[str, Any]) -> dict[str, DeviceTensor]:
        """Launch a run, and do not wait for it; inputs: arrays, or borrowed tensors.

        Raises as ``run``.
        """
        part, machine = self._part, self._machine
        with self._lock:
            self._held = [each for each in self._held if not each[0].passed()]
            memories, borrowed = self._given(inputs)
            lent = [self._lent(number) for number in range(len(part.outputs))]
            try:
                with self._bound(memories, [each.memory for each in lent]):
                    self._all()
            finally:
                if borrowed:
                    self._held.append((machine.mark(), borrowed))
        return {
            signature.name: DeviceTensor(self._name, machine, each, signature)
            for signature, each in zip(part.outputs, lent, strict=True)
        }

    def __del__(self) -> None:
        if getattr(self, "_held", None):
            self._machine.wait()

    def _launched(self, inputs: Mapping[str, Any]) -> None:
        memories, _ = self._given(inputs)
        with self._bound(memories, self._outputs):
            self._all()

    def _given(self, inputs: Mapping[str, Any]) -> Given:
        """Arrays are copied to the part's own memory, as are tensors that begin at an odd place."""
        memories, borrowed = [], []
        for signature, own in zip(self._part.inputs, self._inputs, strict=True):
            value = inputs[signature.name]
            memory = own
            if not isinstance(value, Borrowed):
                self._write(own, value)
            elif size_of(signature):
                borrowed.append(value)
                memory = self._machine.adopt(value.address)
                if value.address % ALIGNED:
                    self._machine.copy(own, memory, size_of(signature))
                    memory = own
            memories.append(memory)
        return memories, borrowed

    def _lent(self, number: int) -> Lent:
        """Memory for an output; what other streams had rests until they are done."""
        pool = self._pools[number]
        if not pool:
            size = max(size_of(self._part.outputs[number]), 1)
            return Lent(self._machine.allocate(size), pool)
        memory, elsewhere = pool.pop()
        if elsewhere:
            self._machine.wait()
        return Lent(memory, pool)

    @contextmanager
    def _bound(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[None]:
        """Launches read and write these memories; gathered, where they had them before."""
        own = self._inputs, self._outputs, self._whole
        memories = (*inputs, *outputs)
        if any(a is not b for a, b in zip(memories, (*own[0], *own[1]), strict=True)):
            self._inputs, self._outputs = list(inputs), list(outputs)
            self._whole = self._known_again(tuple(map(self._machine.address, memories)))
        try:
            yield
        finally:
            self._inputs, self._outputs, self._whole = own

    def _known_again(self, addresses: tuple[int, ...]) -> Callable[[], None] | None:
        """Launches that are gathered once their memories come a second time."""
        known = self._known
        known[addresses] = known[addresses] or self._gathered() if addresses in known else None
        known.move_to_end(addresses)
        if len(known) > MOST_GATHERED:
            known.popitem(last=False)
        return known[addresses]
