"""Coordinates that a model ends with, such as the corners of a detector's boxes.

A detector adds the place of each pixel to what its layers say, and multiplies by the pixel's size.
In 8 bits the corners of boxes in an image of 640 pixels would be some 2.5 pixels apart.  Few
operators follow, on few elements, so they stay float.
"""

from .model import FloatModel
from .plan import Plan, Role, activations

__all__ = ["coordinates"]

ELEMENTWISE = (Role.FUNCTION, Role.PAIR, Role.PASS)
LEAST_AXES = 2
"""Axes along which a constant differs, at least, to be one of places: one of channels has one."""


def coordinates(model: FloatModel, decided: Plan) -> dict[str, str]:
    """First outputs of the nodes that add or multiply places, each with the reason to stay float.

    No products, averages or normalisations follow.  Functions of their results stay float too.
    """
    used: set[str] = set()
    found: dict[str, str] = {}
    for node in reversed(model.nodes):
        out = node.outputs[0]
        role = decided.roles.get(out)
        if role is not None and (role not in ELEMENTWISE or not used.isdisjoint(node.outputs)):
            used.update(node.inputs)
        elif role is Role.PAIR:
            for name in activations(model, node):
                value = model.constants.get(name)
                if value is not None and sum(size > 1 for size in value.shape) >= LEAST_AXES:
                    shape = "x".join(map(str, value.shape))
                    found[out] = f"it computes coordinates, with {name!r} of {shape} places"
    return found
