"""DLPack's capsules: tensors that libraries hand each other in place.

Source: DLPack (dlpack.h, version 1.0), and the Python Array API standard on ``__dlpack__``.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import InputError

__all__ = ["CPU", "CUDA", "Borrowed", "capsule_of", "take"]

CPU, CUDA = 1, 2
"""kDLCPU and kDLCUDA"""
VERSION = (1, 0)
PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
USED = {PLAIN: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}
"""Names of a capsule: until another library takes its tensor, and from then on."""
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
KINDS = {code: kind for kind, code in CODES.items()}
Address = ctypes.c_void_p
Deleter = ctypes.CFUNCTYPE(None, Address)
Destructor = ctypes.PYFUNCTYPE(None, Address)


class _Tensor(ctypes.Structure):
    """DLTensor"""

    _fields_ = (
        ("data", Address),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Plain(ctypes.Structure):
    """DLManagedTensor"""

    _fields_ = (("tensor", _Tensor), ("context", Address), ("deleter", Deleter))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", Address),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


STRUCTURES = {PLAIN: _Plain, VERSIONED: _Versioned}
_kept: dict[int, Any] = {}
"""By the address of a structure that was handed over: it, and what keeps its memory."""


@Deleter
def _delete(address: int) -> None:
    _kept.pop(address, None)


@Destructor
def _destroy(capsule: int) -> None:
    """A capsule that nobody took."""
    api = _api()
    for name in STRUCTURES:
        if api.PyCapsule_IsValid(capsule, name):
            _kept.pop(api.PyCapsule_GetPointer(capsule, name), None)


def _api() -> ctypes.PyDLL:
    """Functions of Python's own, by the addresses of their objects."""
    api = ctypes.PyDLL(None)
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [Address, ctypes.c_char_p, Destructor]
    api.PyCapsule_IsValid.argtypes = [Address, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = Address
    api.PyCapsule_GetPointer.argtypes = [Address, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [Address, ctypes.c_char_p]
    return api


def capsule_of(
    address: int,
    shape: tuple[int, ...],
    dtype: str,
    device: tuple[int, int],
    keeps: object,
    versioned: bool,
) -> Any:
    """A capsule of a contiguous tensor at ``address``.

    dtype: as signatures have it.  device: DLPack's type and number.  keeps: what the memory lives
    as long as; let go when the consumer is done.  versioned: of DLPack 1.0, which consumers ask for
    by ``max_version``.
    """
    kind = dtype.rstrip("0123456789")
    bits = int(dtype[len(kind) :] or 8)
    strides = [1] * len(shape)
    for number in range(len(shape) - 1, 0, -1):
        strides[number - 1] = strides[number] * shape[number]
    numbers = ctypes.c_int64 * len(shape)
    sizes, steps = numbers(*shape), numbers(*strides)
    pointer = ctypes.POINTER(ctypes.c_int64)
    tensor = _Tensor(
        address,
        *device,
        len(shape),
        *(CODES[kind], bits, 1),
        *(ctypes.cast(each, pointer) for each in (sizes, steps)),
    )
    name = VERSIONED if versioned else PLAIN
    managed: _Versioned | _Plain = _Plain(tensor, None, _delete)
    if versioned:
        managed = _Versioned(*VERSION, None, _delete, 0, tensor)
    place = ctypes.addressof(managed)
    _kept[place] = managed, sizes, steps, keeps
    return _api().PyCapsule_New(place, name, _destroy)


@dataclass(slots=True, eq=False)
class Borrowed:
    """Another library's contiguous tensor; its owner may have it back when nothing refers to this.

    dtype: as signatures have it.  address: of the first element.
    """

    address: int
    shape: tuple[int, ...]
    dtype: str
    give_back: Callable[[], None]

    def __del__(self) -> None:
        self.give_back()


def take(what: str, capsule: Any) -> Borrowed:
    """The tensor of a capsule, which no one else may take then.

    what: the tensor is to the user.
    Raises InputError for a capsule without one, for types that no signature has, and for elements
    that do not follow each other.
    """
    api, place = _api(), id(capsule)
    name = next((each for each in STRUCTURES if api.PyCapsule_IsValid(place, each)), None)
    if name is None:
        raise InputError(f"{what} gives no capsule of DLPack that is still to be taken")
    address = api.PyCapsule_GetPointer(place, name)
    managed = STRUCTURES[name].from_address(address)
    if name == VERSIONED and managed.major != VERSION[0]:
        raise InputError(f"{what} is of DLPack {managed.major}; required {VERSION[0]}")
    tensor = managed.tensor
    shape = tuple(tensor.shape[number] for number in range(tensor.dimensions))
    kind = KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1:
        raise InputError(
            f"{what} has elements of DLPack's type {tensor.code}, {tensor.lanes} at a time; "
            "required single integers, floats or bools"
        )
    step = 1
    for number in range(len(shape) - 1, -1, -1):
        if tensor.strides and shape[number] > 1 and tensor.strides[number] != step and all(shape):
            raise InputError(
                f"{what} has elements that do not follow each other; required a contiguous "
                "tensor: x.contiguous()"
            )
        step *= shape[number]
    api.PyCapsule_SetName(place, USED[name])

    def give_back() -> None:
        if managed.deleter:
            managed.deleter(address)

    dtype = kind if kind == "bool" else f"{kind}{tensor.bits}"
    return Borrowed((tensor.data or 0) + tensor.offset, shape, dtype, give_back)
