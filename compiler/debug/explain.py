"""Why a byte is wrong: which instruction, of those that led to it, is at fault."""

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Finish, Fold, Multiplier, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.runtime.debug.compare import Finding
from dovetail.runtime.debug.order import Race, first_race
from dovetail.runtime.debug.session import InstructionInfo, Session

from ..graph.operators.integer.products import Conv2d
from ..graph.operators.integer.windows import AveragePool2d
from ..targets.vta.operators import AnyAdd
from ..targets.vta.passes.fuse import Layer
from .expected import Reference
from .finish import average_cause, finish_cause, folded_bias
from .results import Result, result_of
from .sums import reads_all_sums, sum_cause

__all__ = ["Cause", "explain"]


@frozen
class Cause:
    """Cause of a wrong byte: ``instruction``, and in a sentence why.

    kind: "order" (it does not wait for another), "program" (it does something else than the model
    says).  certain: whether everything else that led to the byte was found to be right.
    """

    kind: str
    instruction: InstructionInfo
    reason: str
    certain: bool


def explain(session: Session, reference: Reference, finding: Finding) -> Cause:
    """The cause of ``finding``, which ``first_difference`` gave; the session may be elsewhere
    afterwards.
    """
    race = first_race(session, finding.position)
    if race is not None and not _reads_astray(session, race):
        return Cause("order", race.early, str(race), True)
    index = finding.instruction.index
    match session.program[index]:
        case Vector() as vector if finding.tensor is not None:
            layer = reference.maker(finding.tensor)
            result = result_of(session, finding, vector)
            found = result and _vector_cause(session, reference, layer, result)
            if found:
                at, reason = found
                return Cause("program", session.instruction(at), reason, True)
            if race is not None:
                return Cause("order", race.early, str(race), False)
            reason = "what it reads is what the model has, as far as that was compared"
            reason += _parameters(session, result)
            return Cause("program", finding.instruction, reason, False)
        case Store():
            reason = "what it reads was right when it was written; it stores it in the wrong place"
        case _ if finding.tensor is None:
            reason = "it writes where its tensor has no part"
        case _ if finding.channel is None:
            return Cause("program", finding.instruction, "it writes padding", True)
        case _:
            writer = session.writer(None, _source(session, finding))
            who = writer.instruction
            reason = f"it reads what {f'instruction {who.index}' if who else 'nobody'} wrote"
    return Cause("program", finding.instruction, reason, finding.tensor is None)


def _parameters(session: Session, result: Result | None) -> str:
    """Who loaded the parameters of a result, which were not compared."""
    if result is None or result.vector.finish is not Finish.REQUANTIZE:
        return ""
    session.position = result.before
    writer = session.writer(Memory.PAR, result.par).instruction
    return f"; its bias and scale were loaded by instruction {writer.index}" if writer else ""


def _reads_astray(session: Session, race: Race) -> bool:
    """True if the reader reads weights that are not its own even in the order of the program."""
    index = race.reader.index
    for seen in race.ordered:
        if seen.space in (Memory.WGT, Memory.TAP):
            writers = np.unique(seen.writers).tolist()
            parts = {session.record.constants.get(writer) for writer in writers}
            layers = {session.layer_of[writer] for writer in writers if writer >= 0}
            if len(parts) > 1 or layers != {session.layer_of[index]}:
                return True
    return False


def _source(session: Session, finding: Finding) -> int:
    """The DRAM byte that the wrong word was loaded from."""
    session.position = finding.position
    return max(0, int(session.shadow.sources[Memory.ACT][finding.address]))


def _vector_cause(
    session: Session, reference: Reference, layer: Layer, result: Result
) -> tuple[int, str] | None:
    """The instruction at fault, and why; of layers that begin with a convolution."""
    if result.spills:
        return result.index, "its destination reaches into padding, or beyond its tensor"
    vector = result.vector
    tensor = session.record.tensors[result.tensor]
    node = layer.nodes[0]
    is_sum = vector.fold is not Fold.MAC or vector.multiplier in (Multiplier.TAP, Multiplier.WINDOW)
    of_convolution = tensor.addend or len(layer.nodes) == 1 or not _adds(layer)
    if isinstance(node.operator, AveragePool2d):
        return average_cause(session, node.operator, result)
    if not isinstance(node.operator, Conv2d) or not of_convolution or not is_sum:
        return None
    if vector.finish is not Finish.REQUANTIZE:
        return result.index, f"finish is {vector.finish.name.lower()}; required requantize"
    sums = np.asarray(reference.values[node.output]).reshape(tensor.nhwc)
    bias = folded_bias(reference, node)
    wanted = int(sums[result.row, result.column, result.channel])
    raw = wanted - int(bias[result.channel])
    if result.total == raw:
        return finish_cause(session, reference, layer, result, bias)
    elsewhere = _same_sums(sums - bias, result, tensor.channel_of)
    astray = vector.source is Memory.ACT or not reads_all_sums(session, result)
    if elsewhere is not None and astray:
        row, column = elsewhere
        return result.index, (
            f"it takes the sums of row {row}, column {column} for those of row {result.row}, "
            f"column {result.column}"
        )
    return sum_cause(session, reference, node, result, raw)


def _adds(layer: Layer) -> bool:
    return any(isinstance(node.operator, AnyAdd) for node in layer.nodes)


def _same_sums(
    sums: "np.ndarray", result: Result, channel_of: "np.ndarray"
) -> tuple[int, int] | None:
    """Row and column of the one element whose sums are those of ``result``, in every lane."""
    lanes = len(result.totals)
    channels = channel_of[result.block * lanes : (result.block + 1) * lanes]
    known = channels >= 0
    same = (sums[:, :, channels[known]] == result.totals[known]).all(axis=2)
    places = np.argwhere(same)
    if known.sum() < 2 or len(places) != 1:
        return None
    return int(places[0][0]), int(places[0][1])
