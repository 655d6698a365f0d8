"""Protocol of devices, which make parts of modules ready and run them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from .parts import Part
from .result import RunResult

if TYPE_CHECKING:
    from dovetail.isa.launch import Launch, LaunchResult

__all__ = ["Device", "Launcher", "PreparedPart"]


class PreparedPart(Protocol):
    """A part that is ready to run, as often as wanted."""

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> RunResult:
        """One run.

        inputs: the part's by name, of its signatures; perhaps others too.
        Raises InputError for values that the model cannot take, DeviceError when the device stops
        with an error.
        """
        ...


class Device(Protocol):
    """Runs parts of modules; satisfied structurally."""

    @property
    def name(self) -> str:
        """As the user calls it: "sim", "sim:tiny", "board:ulx3s@/dev/ttyUSB0"."""
        ...

    @property
    def target_kind(self) -> str:
        """The kind of targets whose parts it runs: "vta", "cpu"."""
        ...

    def prepare(self, part: Part) -> PreparedPart:
        """``part``, ready to run.

        Raises DeviceError when the device cannot run it, ModuleError when it is damaged.
        """
        ...

    def close(self) -> None:
        """Give back what others may want, a port for instance; the next run takes it again."""
        ...


class Launcher(Protocol):
    """Runs programs of an accelerator: what simulator, RTL and boards do below ``Device``."""

    def run(self, launch: "Launch") -> "LaunchResult":
        """Run to the end, or to an error; the launch is not changed."""
        ...
