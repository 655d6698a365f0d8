"""The trace, read back by Perfetto's own schema."""

import shutil
from pathlib import Path

import pytest

from dovetail.runtime.profile.flows import token_flows
from dovetail.runtime.profile.profile import Profile

schema = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the extra profile"
)


@pytest.fixture(params=["digits", "resnet18"])
def profile(request: pytest.FixtureRequest) -> Profile:
    found: Profile = request.getfixturevalue(request.param)
    return found


def test_every_instruction_is_a_slice_of_its_unit(profile: Profile) -> None:
    from dovetail.compiler.cli.profile.perfetto import UNITS, perfetto_trace

    trace = schema.Trace()
    trace.ParseFromString(perfetto_trace(profile))
    events = [p for p in trace.packet if p.HasField("track_event")]
    begun = [
        p
        for p in events
        if p.track_event.type == schema.TrackEvent.TYPE_SLICE_BEGIN
        and p.track_event.track_uuid in UNITS.values()
    ]
    assert len(begun) == len(profile.program)
    notes = [
        {n.name: n.int_value or n.string_value for n in p.track_event.debug_annotations}
        for p in begun
    ]
    assert {note["instruction"] or 0 for note in notes} == set(range(len(profile.program)))
    nanoseconds = 1e9 / profile.config.clock_hz
    for packet, note in zip(begun, notes, strict=True):
        entry = profile.timeline[note["instruction"] or 0]
        assert packet.timestamp >= (entry.start + 1) * nanoseconds - 1
        assert packet.track_event.track_uuid == UNITS[entry.unit]


def test_slices_of_a_track_nest_and_end(profile: Profile) -> None:
    from dovetail.compiler.cli.profile.perfetto import perfetto_trace

    trace = schema.Trace()
    trace.ParseFromString(perfetto_trace(profile))
    depth: dict[int, int] = {}
    last: dict[int, int] = {}
    for packet in trace.packet:
        event = packet.track_event
        if not packet.HasField("track_event") or event.type == schema.TrackEvent.TYPE_COUNTER:
            continue
        assert packet.timestamp >= last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        change = 1 if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN else -1
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + change
        assert depth[event.track_uuid] in (0, 1)
    assert not any(depth.values())


def test_every_flow_begins_and_ends_once(profile: Profile) -> None:
    from dovetail.compiler.cli.profile.perfetto import perfetto_trace

    trace = schema.Trace()
    trace.ParseFromString(perfetto_trace(profile))
    begun = [f for p in trace.packet for f in p.track_event.flow_ids]
    ended = [f for p in trace.packet for f in p.track_event.terminating_flow_ids]
    assert sorted(begun) == sorted(ended)
    assert len(set(begun)) == len(begun) == len(token_flows(profile.program))


def test_counters_hold_the_bytes_that_were_moved(profile: Profile) -> None:
    from dovetail.compiler.cli.profile.perfetto import TRAFFIC, perfetto_trace

    trace = schema.Trace()
    trace.ParseFromString(perfetto_trace(profile))
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    used = {p.track_event.track_uuid for p in trace.packet if p.HasField("track_event")}
    assert used <= set(tracks)
    for name, uuid in TRAFFIC.items():
        assert tracks[uuid].HasField("counter")
        samples = [p for p in trace.packet if p.track_event.track_uuid == uuid]
        moved = sum(p.track_event.double_counter_value for p in samples)
        moved *= profile.cycles / len(samples)
        beats = profile.result.counters[f"{name}_beats"] * profile.config.bus_bytes
        assert moved == pytest.approx(beats)


def trace_processor() -> Path:
    """Perfetto's own, on PATH or where its Python package keeps what it has downloaded."""
    kept = Path.home() / ".local" / "share" / "perfetto" / "prebuilts"
    found = [shutil.which(name) for name in ("trace_processor_shell", "trace_processor")]
    paths = [*filter(None, found), *sorted(kept.glob("trace_processor_shell*"))]
    if not paths:
        pytest.skip(f"no trace_processor_shell on PATH or in {kept}")
    return Path(paths[0])


def test_the_trace_processor_reads_what_was_written(digits: Profile, tmp_path: Path) -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    from dovetail.compiler.cli.profile.perfetto import perfetto_trace

    program, path = trace_processor(), tmp_path / "digits.pftrace"
    path.write_bytes(perfetto_trace(digits))
    config = TraceProcessorConfig(bin_path=str(program))
    with TraceProcessor(trace=str(path), config=config) as reader:
        broken = "select name, value from stats where severity = 'error' and value > 0"
        assert not list(reader.query(broken))
        of_units = (
            "select count(*) as n from slice join track on slice.track_id = track.id "
            "where track.name in ('LOAD', 'GEMM', 'VECTOR', 'STORE')"
        )
        assert next(reader.query(of_units)).n == len(digits.program)
        assert not list(reader.query("select id from slice where dur < 0"))
        flows = next(reader.query("select count(*) as n from flow")).n
        assert flows == len(token_flows(digits.program))
