"""The trace, read back by Perfetto's own schema."""

from pathlib import Path

import pytest

from dovetail.runtime.profile.profile import Profile

from .browser import profiled

schema = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the extra profile"
)


@pytest.fixture(params=["digits", "resnet18"])
def profile(request: pytest.FixtureRequest, digits_model: Path) -> Profile:
    if request.param == "digits":
        return profiled("digits", digits_model, "vta:tiny")
    found: Profile = request.getfixturevalue("resnet18")
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
    from dovetail.runtime.profile.flows import token_flows

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
