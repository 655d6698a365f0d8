"""A profile as a Perfetto trace (https://ui.perfetto.dev)."""

from itertools import count

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from dovetail.runtime.profile.flows import token_flows
from dovetail.runtime.profile.profile import Profile
from dovetail.runtime.profile.traffic import dram_traffic

__all__ = ["perfetto_trace"]

PROCESS = 1
UNITS = {"LOAD": 2, "GEMM": 3, "VECTOR": 4, "STORE": 5}
QUEUES = {"LOAD": 12, "GEMM": 13, "VECTOR": 14, "STORE": 15}
TRAFFIC = {"fetch": 22, "load": 23, "store": 24}
SEQUENCE = 1
BINS = 1000


def perfetto_trace(profile: Profile) -> bytes:
    """One track a unit with its instructions, one with what they waited for, tokens as flows, and
    memory traffic as counters.  Times are those of the configuration's clock.
    """
    builder = TraceProtoBuilder()
    nanoseconds = 1e9 / profile.config.clock_hz

    def track(uuid: int, name: str, parent: int | None = None, counter: bool = False) -> None:
        descriptor = builder.add_packet().track_descriptor
        descriptor.uuid = uuid
        descriptor.name = name
        if parent is not None:
            descriptor.parent_uuid = parent
        if counter:
            descriptor.counter.SetInParent()

    def event(kind: int, cycle: float, uuid: int) -> TrackEvent:
        packet = builder.add_packet()
        packet.timestamp = round(cycle * nanoseconds)
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = uuid
        return packet.track_event

    track(PROCESS, f"{profile.model} on {profile.config.name}")
    for unit, uuid in UNITS.items():
        track(uuid, unit, PROCESS)
        track(QUEUES[unit], f"{unit} waits", PROCESS)
    for name, uuid in TRAFFIC.items():
        track(uuid, f"{name}, bytes a cycle", PROCESS, counter=True)

    begins, ends = _flows(profile)
    last: dict[str, int] = {}
    for entry in profile.timeline:
        if entry.start < 0:
            continue
        end = entry.end if entry.end >= 0 else profile.cycles
        # A unit may hold several instructions in its pipeline; on its track one follows the other.
        begin = max(entry.start + 1, last.get(entry.unit, 0))
        waited = (
            entry.start
            + 1
            - sum((entry.waited_memory, entry.waited_token or 0, entry.waited_port or 0))
        )
        for name, cycles in (
            ("fetch", entry.waited_memory),
            ("token", entry.waited_token or 0),
            ("bank", entry.waited_port or 0),
        ):
            if cycles:
                event(TrackEvent.TYPE_SLICE_BEGIN, waited, QUEUES[entry.unit]).name = name
                waited += cycles
                event(TrackEvent.TYPE_SLICE_END, waited, QUEUES[entry.unit])
        opened = event(TrackEvent.TYPE_SLICE_BEGIN, begin, UNITS[entry.unit])
        opened.name = profile.layers[entry.layer].name
        opened.flow_ids.extend(begins.get(entry.index, ()))
        opened.terminating_flow_ids.extend(ends.get(entry.index, ()))
        for name, value in (
            ("instruction", entry.index),
            ("layer", entry.layer),
            ("queued", entry.queued),
            ("accepted", entry.start),
            ("ended", entry.end),
        ):
            note = opened.debug_annotations.add()
            note.name, note.int_value = name, value
        note = opened.debug_annotations.add()
        note.name, note.string_value = "assembly", profile.assembly[entry.index]
        last[entry.unit] = max(end + 1, begin)
        event(TrackEvent.TYPE_SLICE_END, last[entry.unit], UNITS[entry.unit])

    traffic = dram_traffic(profile.program, profile.timeline, profile.config, profile.cycles, BINS)
    for name, series in traffic.items():
        for place, value in enumerate(series):
            sample = event(TrackEvent.TYPE_COUNTER, place * profile.cycles / BINS, TRAFFIC[name])
            sample.double_counter_value = float(value)
    return bytes(builder.serialize())


def _flows(profile: Profile) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Flow numbers that begin at each instruction, and that end there."""
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for number, flow in zip(count(1), token_flows(profile.program), strict=False):
        begins.setdefault(flow.source, []).append(number)
        ends.setdefault(flow.target, []).append(number)
    return begins, ends
