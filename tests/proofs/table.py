"""The proofs there are."""

from . import queues
from .run import Proof

__all__ = ["PROOFS"]

PROOFS = (
    Proof(
        name="queue",
        subject="head_queue",
        bench=queues.head_queue,
        says="`HeadQueue` gives back what was pushed, in order, nothing lost or twice, and never "
        "holds more than its depth; `room` and `valid` are exact",
        configs=("tiny", "zynq7020"),
        cover=40,
        bugs=(
            ("held > 2", "held > 3"),
            ("held < self._depth - 1", "held < self._depth"),
            ("(stored | (self.valid & ~pops))", "stored"),
        ),
        quick=True,
    ),
)
