"""AXI4 and AXI4-Lite signatures (AMBA AXI specification, ARM IHI 0022), manager's side."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

__all__ = ["FETCH_ID", "LOAD_ID", "Axi4", "Axi4Lite"]

FETCH_ID = 0
LOAD_ID = 1


class Axi4(wiring.Signature):
    """A 32-bit-address AXI4 manager with a one-bit ID and ``data_bytes`` of data.

    Signals have their names in the specification.  Bursts are INCR, whole beats; LOCK, CACHE, PROT
    and QOS are left to the integrator.
    """

    def __init__(self, data_bytes: int) -> None:
        bits = 8 * data_bytes
        members: dict[str, Member] = {}
        for channel in ("ar", "aw"):
            members |= {
                f"{channel}id": Out(1),
                f"{channel}addr": Out(32),
                f"{channel}len": Out(8),
                f"{channel}size": Out(3),
                f"{channel}burst": Out(2),
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
            }
        members |= {
            "rid": In(1),
            "rdata": In(bits),
            "rresp": In(2),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
            "wdata": Out(bits),
            "wstrb": Out(data_bytes),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(1),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
        }
        super().__init__(members)


class Axi4Lite(wiring.Signature):
    """A 32-bit AXI4-Lite manager with ``address_bits`` of byte address."""

    def __init__(self, address_bits: int) -> None:
        super().__init__(
            {
                "awaddr": Out(address_bits),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(address_bits),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(32),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )
