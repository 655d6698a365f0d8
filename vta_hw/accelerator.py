"""The whole accelerator."""

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from .axi import Axi4, Axi4Lite
from .banked_scratchpad import BankedScratchpad
from .control import RunControl
from .counters import Counters
from .fetch import Fetch
from .gemm import Gemm, matrix_parts
from .head_queue import HeadQueue
from .issue import QUEUED, Issue
from .load import Load
from .memory_port import MemoryPort
from .registers import ADDRESS_BITS, HostRegisters
from .scratchpad import SimpleScratchpad
from .store import Store
from .table_scratchpad import TableScratchpad
from .tap_scratchpad import TapScratchpad
from .vector import Vector
from .weight_scratchpad import weight_scratchpad

__all__ = ["Accelerator"]


class Accelerator(wiring.Component):
    """Five units, six memories, one AXI4 manager, one AXI4-Lite subordinate.

    Members
    -------
    memory : Out(Axi4)
    host : In(Axi4Lite)
    irq : Out(1)
        High from the end of a run to the next start.
    trace_dispatch, trace_accept, trace_done : Out(4)
        Bit per unit: an instruction is dispatched, accepted, ended in this cycle.  For logic
        analysers and testbenches.
    trace_cycle : Out(1)
        A run is under way in this cycle.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self._config = config
        super().__init__(
            {
                "memory": Out(Axi4(config.bus_bytes)),
                "host": In(Axi4Lite(ADDRESS_BITS)),
                "irq": Out(1),
                "trace_dispatch": Out(len(Unit)),
                "trace_accept": Out(len(Unit)),
                "trace_done": Out(len(Unit)),
                "trace_cycle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.registers = registers = HostRegisters(config)
        m.submodules.control = control = RunControl(
            deep=config.deep_pipelines, ahead=config.two_loads
        )
        clear = ResetInserter(registers.start)

        def add(name: str, component: wiring.Component) -> wiring.Component:
            m.submodules[name] = clear(component)
            return component

        fetch = add("fetch", Fetch(config))
        issue = add("issue", Issue(config))
        load, gemm = add("load", Load(config)), add("gemm", Gemm(config))
        vector, store = add("vector", Vector(config)), add("store", Store(config))
        port = add("memory_port", MemoryPort(config))
        counters = add("counters", Counters(deep=config.deep_pipelines))
        self._memories(m, load, gemm, vector, store)
        queues_empty = self._queues(m, clear, fetch, issue)

        connect(m, port.memory, flipped(self.memory))
        connect(m, flipped(self.host), registers.host)
        units = {Unit.LOAD: load, Unit.GEMM: gemm, Unit.VECTOR: vector, Unit.STORE: store}
        for unit, component in units.items():
            connect(m, getattr(issue, f"control_{unit.name.lower()}"), component.control)
        for name, component in (("fetch", fetch), ("load", load), ("store", store)):
            connect(m, component.bursts, getattr(port, name))
        bus = port.memory
        if config.two_loads:
            m.d.comb += [
                load.announced.eq(port.load_announced),
                load.index.eq(issue.head_load.index),
                control.burst_index.eq(load.burst_index),
                control.beat_index.eq(load.beat_index),
            ]
        m.d.comb += [
            fetch.enable.eq(control.enable),
            issue.enable.eq(control.enable),
            port.enable.eq(control.enable),
            fetch.address.eq(registers.program_address),
            fetch.count.eq(registers.program_count),
            fetch.beat.eq(port.fetch_beat),
            fetch.beat_last.eq(bus.rlast),
            fetch.beat_data.eq(bus.rdata),
            load.beat.eq(port.load_beat),
            load.beat_data.eq(bus.rdata),
            port.window_base.eq(registers.window_base),
            port.window_limit.eq(registers.window_limit),
            bus.wvalid.eq(store.beat_valid),
            bus.wdata.eq(store.beat),
            bus.wstrb.eq(store.writes.replicate(config.bus_bytes)),
            store.enable.eq(control.enable),
            bus.wlast.eq(store.last),
            store.beat_ready.eq(bus.wready),
            store.response.eq(port.response),
        ]
        m.d.comb += [
            control.start.eq(registers.start),
            control.stop.eq(registers.stop),
            control.idle.eq(fetch.finished & queues_empty & ~issue.in_flight.any()),
            control.quiet.eq(port.quiet),
            control.illegal.eq(fetch.illegal),
            control.fetch_outside.eq(port.fetch_outside),
            control.load_outside.eq(port.load_outside),
            control.store_outside.eq(port.store_outside),
            control.fetch_error.eq(port.read_error & port.fetch_beat),
            control.load_error.eq(port.read_error & port.load_beat),
            control.store_error.eq(port.write_error),
            control.requested.eq(fetch.requested),
            control.received.eq(fetch.received),
            control.dispatched.eq(fetch.dispatched),
            control.index.eq(issue.index),
            control.present.eq(issue.in_flight | issue.head_valid),
            control.done.eq(issue.done),
            control.watchdog.eq(registers.watchdog),
            registers.busy.eq(control.running),
            registers.finished.eq(control.finished),
            registers.failed.eq(control.failed),
            registers.error_code.eq(control.error_code),
            registers.error_index.eq(control.error_index),
            registers.counters.eq(counters.values),
            counters.running.eq(control.running),
            counters.busy.eq(issue.busy),
            counters.stall_token.eq(issue.stall_token),
            counters.stall_port.eq(issue.stall_port),
            counters.done.eq(issue.done),
            counters.fetch_beat.eq(port.fetch_beat),
            counters.load_beat.eq(port.load_beat),
            counters.store_beat.eq(bus.wvalid & bus.wready),
            self.irq.eq((control.finished | control.failed) & ~registers.start),
            self.trace_dispatch.eq(fetch.push),
            self.trace_accept.eq(issue.accept),
            self.trace_done.eq(issue.done),
            self.trace_cycle.eq(control.running),
        ]
        return m

    def _queues(self, m: Module, clear: ResetInserter, fetch: Fetch, issue: Issue) -> Signal:
        """One queue a unit between FETCH and issue; return whether all are empty."""
        for unit in Unit:
            name = unit.name.lower()
            queue = HeadQueue(QUEUED[unit].size, self._config.queue_depth)
            m.submodules[f"queue_{name}"] = clear(queue)
            entry = Signal(QUEUED[unit], name=f"entry_{name}")
            m.d.comb += [
                entry.instruction.eq(fetch.word[: entry.instruction.shape().size]),
                entry.index.eq(fetch.dispatched),
                queue.push_data.eq(entry),
                queue.push.eq(fetch.push[unit]),
                fetch.full[unit].eq(~queue.room),
                getattr(issue, f"head_{name}").eq(queue.head),
                issue.head_valid[unit].eq(queue.valid),
                queue.pop.eq(issue.accept[unit]),
            ]
        empty = Signal()
        m.d.comb += empty.eq(~issue.head_valid.any())
        return empty

    def _memories(self, m: Module, load: Load, gemm: Gemm, vector: Vector, store: Store) -> None:
        config = self._config
        parts = matrix_parts(config)
        registered = ("gemm", "vector", "store") if config.deep_pipelines else ()
        m.submodules.act = act = BankedScratchpad(
            config,
            Memory.ACT,
            ("gemm", "vector", "store"),
            ("load", "vector"),
            registered=registered,
            in_turns=("vector",),
        )
        m.submodules.acc = acc = BankedScratchpad(
            config,
            Memory.ACC,
            ("gemm", "vector"),
            ("gemm", "vector", "load"),
            registered=registered,
            parted=("gemm",),
            parts=parts,
            in_turns=("vector",),
            by_beats=("load",) if Memory.ACC in config.by_beats else (),
        )
        wgt_beats, par_beats = (
            config.word_bytes(memory) // config.bus_bytes for memory in (Memory.WGT, Memory.PAR)
        )
        m.submodules.wgt = wgt = weight_scratchpad(config, parts, wgt_beats)
        m.submodules.par = par = SimpleScratchpad(
            config,
            Memory.PAR,
            1,
            par_beats,
            in_turns=True,
            rows=config.row_parameters,
            apart=1 + config.short_constants,
            halves=config.short_constants,
        )
        m.submodules.tap = tap = TapScratchpad(config)
        m.submodules.tab = tab = TableScratchpad(config)
        for part in range(parts):
            for name, memory_side in (
                ("wgt", getattr(wgt, f"read_{part}")),
                ("acc_read", getattr(acc, f"read_gemm_{part}")),
                ("acc_write", getattr(acc, f"write_gemm_{part}")),
            ):
                connect(m, getattr(gemm, f"{name}_{part}"), memory_side)
        for user, memory_side in (
            (gemm.act, act.read_gemm),
            (vector.act_read, act.read_vector),
            (store.act, act.read_store),
            (load.write_act, act.write_load),
            (vector.act_write, act.write_vector),
            (vector.acc_read, acc.read_vector),
            (vector.acc_write, acc.write_vector),
            (load.write_acc, acc.write_load),
            (load.write_wgt, wgt.write),
            (vector.par, par.read_0),
            (load.write_par, par.write),
            *(((vector.par_row, par.row),) if config.row_parameters else ()),
            (vector.tap, tap.read),
            (load.write_tap, tap.write),
            (vector.tab, tab.read),
            (load.write_tab, tab.write),
        ):
            connect(m, user, memory_side)
