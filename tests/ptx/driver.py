"""A driver of NVIDIA's that interprets PTX: the functions of ``libcuda`` that the runtime calls.

Source: CUDA Driver API (NVIDIA).
"""

import ctypes
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .machine import run_kernel
from .text import Kernel, read_kernels

__all__ = ["FakeDriver"]

FIRST, GAP = 1 << 40, 1 << 32
INVALID_VALUE, NOT_READY, STREAM = 1, 600, 77

Launch = tuple[Kernel, int, int, list[NDArray[np.uint8]], int]
STATIC_BYTES, DYNAMIC_ATTRIBUTE = 48 << 10, 8
"""Shared memory that a launch may give unless the attribute allows more."""


class FakeDriver:
    """One GPU.  log: the functions that were called; graphs: whether the driver has them.

    busy: whether it has not come to any event yet.  waiting: streams that wait for one.
    """

    def __init__(self, graphs: bool = True) -> None:
        self.log: list[str] = []
        self.busy = False
        self.waiting: list[int] = []
        self._graphs = graphs
        self._memories: dict[int, NDArray[np.uint8]] = {}
        self._objects: list[Any] = [None]
        self._captured: list[Launch] | None = None
        self._limits: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cuGraph") and not self._graphs:
            raise AttributeError(name)
        words = re.sub(r"([A-Z])", r"_\1", name.removeprefix("cu").removesuffix("_v2")).lower()
        function = getattr(type(self), words, None)
        if function is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.log.append(name)
            return function(self, *arguments) or 0

        return call

    def _new(self, place: Any, value: Any) -> None:
        """A handle of ``value``, in the variable that ``place`` refers to."""
        self._objects.append(value)
        place._obj.value = len(self._objects) - 1

    def _init(self, flags: int) -> None:
        pass

    def _device_get_count(self, count: Any) -> None:
        count._obj.value = 1

    def _device_get(self, device: Any, number: int) -> None:
        device._obj.value = number

    def _device_get_attribute(self, found: Any, attribute: int, device: Any) -> None:
        found._obj.value = {75: 9, 76: 0}[attribute]

    def _device_get_name(self, text: Any, size: int, device: Any) -> None:
        text.value = b"Interpreted GPU"

    def _device_primary_ctx_retain(self, context: Any, device: Any) -> None:
        self._new(context, "context")

    def _ctx_set_current(self, context: Any) -> None:
        pass

    def _get_error_string(self, status: int, text: Any) -> None:
        text._obj.value = b"invalid value"

    def _module_load_data(self, module: Any, source: Any) -> None:
        self._new(module, read_kernels(source.value.decode()))

    def _module_get_function(self, function: Any, module: Any, name: Any) -> None:
        self._new(function, self._objects[module.value][name.value.decode()])

    def _func_set_attribute(self, function: Any, attribute: int, value: int) -> int | None:
        if attribute != DYNAMIC_ATTRIBUTE:
            return INVALID_VALUE
        self._limits[function.value] = value
        return None

    def _mem_alloc(self, address: Any, size: Any) -> None:
        address._obj.value = FIRST + GAP * len(self.log)
        self._memories[address._obj.value] = np.zeros(size.value, np.uint8)

    def _mem_free(self, address: Any) -> None:
        del self._memories[address.value]

    def _memcpy_hto_d(self, address: Any, host: Any, size: Any) -> None:
        self._at(address.value)[: size.value] = _host(host, size)

    def _memcpy_dto_h(self, host: Any, address: Any, size: Any) -> None:
        _host(host, size)[:] = self._at(address.value)[: size.value]

    def _memcpy_dto_d(self, address: Any, source: Any, size: Any) -> None:
        self._at(address.value)[: size.value] = self._at(source.value)[: size.value]

    def _event_create(self, event: Any, flags: int) -> None:
        self._new(event, "event")

    def _event_record(self, event: Any, stream: Any) -> int | None:
        return None if stream is None else INVALID_VALUE

    def _event_query(self, event: Any) -> int:
        return NOT_READY if self.busy else 0

    def _event_destroy(self, event: Any) -> None:
        self._objects[event.value] = None

    def _stream_wait_event(self, stream: Any, event: Any, flags: int) -> int | None:
        if self._objects[event.value] != "event":
            return INVALID_VALUE
        self.waiting.append(stream.value)
        return None

    def _ctx_synchronize(self) -> None:
        self.busy = False

    def _at(self, address: int) -> NDArray[np.uint8]:
        """Memory from an address on."""
        base = max(each for each in self._memories if each <= address)
        return self._memories[base][address - base :]

    def _launch_kernel(self, function: Any, *shape: Any) -> int | None:
        *sizes, shared, stream, given, _ = shape
        kernel = self._objects[function.value]
        if shared > self._limits.get(function.value, STATIC_BYTES):
            return INVALID_VALUE
        pointers = [ctypes.cast(each, ctypes.POINTER(ctypes.c_uint64)) for each in given]
        places = [self._at(each.contents.value) for each in pointers if each]
        launch = kernel, sizes[0], sizes[3], places, shared
        if self._captured is None:
            run_kernel(*launch)
        elif stream is None or stream.value != STREAM:
            return INVALID_VALUE
        else:
            self._captured.append(launch)
        return None

    def _stream_create(self, stream: Any, flags: int) -> None:
        stream._obj.value = STREAM

    def _stream_begin_capture(self, stream: Any, mode: int) -> None:
        self._captured = []

    def _stream_end_capture(self, stream: Any, graph: Any) -> None:
        self._new(graph, self._captured)
        self._captured = None

    def _graph_instantiate_with_flags(self, ready: Any, graph: Any, flags: Any) -> None:
        self._new(ready, list(self._objects[graph.value]))

    def _graph_destroy(self, graph: Any) -> None:
        self._objects[graph.value] = None

    def _graph_launch(self, ready: Any, stream: Any) -> int | None:
        if stream.value != STREAM:
            return INVALID_VALUE
        for launch in self._objects[ready.value]:
            run_kernel(*launch)
        return None

    def _graph_exec_destroy(self, ready: Any) -> None:
        self._objects[ready.value] = None


def _host(pointer: Any, size: Any) -> NDArray[np.uint8]:
    kind = ctypes.POINTER(ctypes.c_uint8)
    return np.ctypeslib.as_array(ctypes.cast(pointer, kind), (size.value,))
