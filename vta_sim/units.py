"""Queues, tokens and banks: when each unit accepts its next instruction.

Source: docs/timing.md, "Accepting an instruction".
"""

from collections import deque

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Unit

from .memory import NEVER
from .plans import UNITS, Plan
from .timing import GEMM_LATENCY, VECTOR_LATENCY

__all__ = ["LATENCY", "PRIORITY", "Issue"]

PRIORITY = tuple(map(int, (Unit.GEMM, Unit.VECTOR, Unit.STORE, Unit.LOAD)))
LATENCY = {int(Unit.GEMM): GEMM_LATENCY, int(Unit.VECTOR): VECTOR_LATENCY}
VECTOR = int(Unit.VECTOR)
OTHERS = tuple(tuple(other for other in range(UNITS) if other != unit) for unit in range(UNITS))


class Issue:
    """The instructions dispatched so far, and what keeps each unit's next one from starting.

    Per instruction, in the order of dispatch: ``plans``, ``dispatched``, ``accepted``, ``ended``
    (cycles; -1 for not known), ``waited_token``, ``waited_port``. Per unit: ``queues`` holds the
    indices of its instructions, of which the first ``done`` are accepted.
    """

    def __init__(self, config: HardwareConfig) -> None:
        self.plans: list[Plan] = []
        self.dispatched: list[int] = []
        self.accepted: list[int] = []
        self.ended: list[int] = []
        self.waited_token: list[int] = []
        self.waited_port: list[int] = []
        self.queues: list[list[int]] = [[] for _ in range(UNITS)]
        self.done = [0] * UNITS
        self.known_ends = 0
        # The first cycle in which a unit can accept; NEVER while that is not known.
        self._free_at = [0] * UNITS
        # For each pair, the cycles from which its tokens, or its credits, can be used.
        self._tokens: list[deque[int]] = [deque() for _ in range(UNITS * UNITS)]
        self._credits = [deque([0] * config.token_max) for _ in range(UNITS * UNITS)]
        # What each unit has in flight: (cycle of its end, banks held, banks a VECTOR writes).
        self._flights: list[list[tuple[int, int, int]]] = [[] for _ in range(UNITS)]
        # For each unit: cycle of its next accept, and from when it waited, for a token and then for
        # a bank.
        self._next = [(NEVER, NEVER, NEVER)] * UNITS
        self._stale = self._now = 0

    def dispatch(self, plan: Plan, cycle: int) -> None:
        """The next instruction enters its unit's queue."""
        queue = self.queues[plan.unit]
        if len(queue) == self.done[plan.unit]:
            self._stale |= 1 << plan.unit
        queue.append(len(self.plans))
        self.plans.append(plan)
        self.dispatched.append(cycle)
        self.accepted.append(-1)
        self.ended.append(-1)
        self.waited_token.append(0)
        self.waited_port.append(0)

    def next(self) -> tuple[int, int]:
        """Cycle and unit of the next accept, as far as known; of two in one cycle, by priority."""
        best, chosen = NEVER, 0
        for unit in PRIORITY:
            if self._stale >> unit & 1:
                self._next[unit] = self._when(unit)
            cycle = self._next[unit][0]
            if cycle < best:
                best, chosen = cycle, unit
        self._stale = 0
        return best, chosen

    def _when(self, unit: int) -> tuple[int, int, int]:
        """When the unit accepts the head of its queue: see ``_next``."""
        queue, done = self.queues[unit], self.done[unit]
        could = self._free_at[unit]
        if done == len(queue) or could == NEVER:
            return NEVER, NEVER, NEVER
        plan = self.plans[queue[done]]
        could = max(could, self.dispatched[queue[done]] + 1)
        ready = could
        for cycles, pairs in ((self._tokens, plan.waits), (self._credits, plan.posts)):
            for pair in pairs:
                there = cycles[pair]
                if not there:
                    return NEVER, could, NEVER
                ready = max(ready, there[0])
        # No earlier than what is already done: the flights that ended before that are forgotten.
        cycle = max(ready, self._now)
        for other in OTHERS[unit]:
            for end, held, _ in self._flights[other]:
                if end >= cycle and held & plan.claim:
                    cycle = end + 1
        if unit == VECTOR:
            for end, _, writes in self._flights[unit]:
                if end >= cycle and writes & plan.reads:
                    cycle = end + 1
        return min(cycle, NEVER), could, ready

    def accept(self, unit: int, cycle: int) -> int:
        """The unit accepts the head of its queue; return the instruction's index."""
        index = self.queues[unit][self.done[unit]]
        plan = self.plans[index]
        _, could, ready = self._next[unit]
        self.done[unit] += 1
        self._stale, self._now = (1 << UNITS) - 1, cycle
        self.accepted[index] = cycle
        self.waited_token[index] = ready - could
        self.waited_port[index] = cycle - ready
        for pair in plan.waits:
            self._tokens[pair].popleft()
            self._credits[pair].append(cycle + 1)
        for pair in plan.posts:
            self._credits[pair].popleft()
        flights = self._flights[unit]
        if plan.issues:
            self._free_at[unit] = cycle + plan.issues
            end = cycle + plan.issues + LATENCY[unit]
            flights[:] = [flight for flight in flights if flight[0] >= cycle]
            flights.append((end, plan.claim, plan.writes))
            self._give(index, plan, end)
        else:
            self._free_at[unit] = NEVER
            flights[:] = [(NEVER, plan.claim, 0)]
        return index

    def end(self, index: int, cycle: int) -> None:
        """The end of a LOAD or STORE is known."""
        plan = self.plans[index]
        self._flights[plan.unit][:] = [(cycle, plan.claim, 0)]
        self._free_at[plan.unit] = cycle + 1
        self._stale = (1 << UNITS) - 1
        self._give(index, plan, cycle)

    def _give(self, index: int, plan: Plan, cycle: int) -> None:
        self.ended[index] = cycle
        self.known_ends += 1
        for pair in plan.posts:
            self._tokens[pair].append(cycle + 1)

    def room(self, plan: Plan, depth: int) -> int:
        """First cycle in which the unit's queue has room, as far as is known."""
        queue = self.queues[plan.unit]
        earlier = len(queue) - depth
        if earlier < 0:
            return 0
        return self.accepted[queue[earlier]] + 1 if earlier < self.done[plan.unit] else NEVER

    def stop(self, cycle: int) -> None:
        """Nothing is accepted after ``cycle``: count what the heads of queues waited till then."""
        self.next()
        for unit in range(UNITS):
            if self.done[unit] == len(self.queues[unit]):
                continue
            index = self.queues[unit][self.done[unit]]
            _, could, ready = self._next[unit]
            ready = min(max(ready, could), cycle + 1)
            self.waited_token[index] = max(ready - could, 0)
            self.waited_port[index] = max(cycle + 1 - max(ready, could), 0)

    def oldest(self, cycle: int) -> int:
        """Index of the oldest instruction, in ``cycle``, of the first unit that has one.

        If none has, that of the next to be dispatched.
        """
        for unit in range(UNITS):
            for place, index in enumerate(self.queues[unit]):
                if place >= self.done[unit] or self.accepted[index] >= cycle:
                    if self.dispatched[index] < cycle:
                        return index
                elif not 0 <= self.ended[index] < cycle:
                    return index
        return sum(when < cycle for when in self.dispatched)

    def waits(self) -> list[str]:
        """What the head of each queue that waits for ever waits for."""
        lines = []
        for unit in Unit:
            if self.done[unit] == len(self.queues[unit]):
                continue
            index = self.queues[unit][self.done[unit]]
            plan = self.plans[index]
            why = [
                f"a token from {Unit(pair // UNITS).name}"
                for pair in plan.waits
                if not self._tokens[pair]
            ]
            why += [
                f"{Unit(pair % UNITS).name} to take a token (it has as many as it can have)"
                for pair in plan.posts
                if not self._credits[pair]
            ]
            why = why or ["a memory bank"]
            lines.append(f"{unit.name} instruction {index} waits for {' and '.join(why)}")
        return lines
