"""A decoder of one token a run as a model of a block of tokens, with the same weights.

Everything is computed for each token as the decoder does.  Only attention sees the others: keys and
values of all tokens are joined with the cache at once, and each token sees those before it.

    past [.., N, ..]              ->  past [.., N + 1 - T, ..]
    Concat(past, new)             ->  Concat(past, new of all T tokens)
    f(mask [N + 1])               ->  f(the mask of each token, its places as they are now)
    token, position [1]           ->  [T];  a given mask [1, N + 1]  ->  [T, N + 1]
    new rows [..]                 ->  [T, ..], also where the decoder gives the cache and its row
    logits                        ->  none

A row of scores has N + 1 places as before, as many of them masked; so sums over it, as that of a
softmax, are those of the decoder.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper, numpy_helper, shape_inference

from dovetail.runtime.generate.cache import Update
from dovetail.runtime.generate.roles import Named, Roles, find_roles
from dovetail.runtime.tensors import TensorSignature

from ....errors import ModelError
from ..element_types import element_type
from .places import Emitter, Spread
from .rules import Rules
from .slots import Slots

__all__ = ["prompt_model"]

FILL = 16
"""Blocks have a multiple of this and one token, so that the cache before them fills blocks of an
accelerator's lanes as the decoder's does."""


def prompt_model(
    model: onnx.ModelProto, tokens: int, named: Named | None = None
) -> onnx.ModelProto:
    """``model``, which takes one token, for blocks of ``tokens``, and up to 15 more: 17, 33, ....

    named: what the model's tensors are for, where their names do not say it.
    Raises ModelError for a model that is not such a decoder, or has an operator in a form that
    there is no rule for; ModuleError where roles are not found.
    """
    if tokens < 2:
        raise ModelError(f"blocks of {tokens} tokens; required at least 2")
    return _Spreading(model, -(-(tokens - 1) // FILL) * FILL + 1, named).run()


@dataclass(slots=True)
class _Spreading:
    model: onnx.ModelProto
    tokens: int
    named: Named | None

    def run(self) -> onnx.ModelProto:
        inferred = shape_inference.infer_shapes(self.model, data_prop=True).graph
        constants = {each.name: numpy_helper.to_array(each) for each in inferred.initializer}
        inputs = [each for each in inferred.input if each.name not in constants]
        given, made = (tuple(map(_signature, each)) for each in (inputs, inferred.output))
        for each in (*given, *made):
            if min(each.shape, default=1) < 0:
                raise ModelError(
                    f"{each}: open sizes; required a decoder of fixed ones, as dovetail quantize "
                    "--dim NAME=SIZE writes it"
                )
        roles = find_roles(given, made, self.named)
        slots = self._slots(roles)
        taken = [*constants, *(name for node in inferred.node for name in node.output)]
        emitter = Emitter(self.tokens, [*taken, *(each.name for each in inputs)])
        types = [*inferred.value_info, *inferred.input, *inferred.output]
        shapes = {each.name: _shape(each) for each in types}
        shapes |= {name: value.shape for name, value in constants.items()}
        # The names of outputs are for those of the new model.
        within = {each.name: emitter.name(f"{each.name}_tokens") for each in inferred.output}
        shapes |= {within[each.name]: _shape(each) for each in inferred.output}
        rules = Rules(emitter, slots, shapes, constants)
        for tensor in filter(None, (roles.token, roles.position, roles.mask)):
            rules.given(tensor.name, tensor.shape)
        for cache in roles.caches:
            rules.caches.given(cache.past.name, cache.axis)
        for node in inferred.node:
            for names in (node.input, node.output):
                names[:] = [within.get(name, name) for name in names]
            rules.add(node)
        new = {each.new.name: rules.of(within[each.new.name]) for each in roles.caches}
        return self._build(roles, rules, inputs, inferred, new)

    def _slots(self, roles: Roles) -> Slots:
        """Raises ModelError for a decoder of another form."""
        size = roles.capacity
        if size is None:
            raise ModelError("a decoder without caches; required some")
        if any(each.update is Update.WHOLE for each in roles.caches):
            raise ModelError(
                "a decoder that gives caches of the length that it takes; required one that gives "
                "new rows, or the cache and a new row behind it"
            )
        if roles.mask is not None and roles.mask.shape != (1, size + 1):
            raise ModelError(
                f"a mask {roles.mask}; required [1, {size + 1}], with the new position behind "
                "the cache's"
            )
        if self.tokens > size:
            raise ModelError(f"blocks of {self.tokens} tokens, and caches of {size}")
        given = roles.position or roles.mask
        assert given is not None  # One of them there is, for caches of fixed length.
        return Slots(self.tokens, size, given.name, roles.position is None)

    def _build(
        self,
        roles: Roles,
        rules: Rules,
        inputs: Sequence[onnx.ValueInfoProto],
        graph: onnx.GraphProto,
        new: Mapping[str, Spread],
    ) -> onnx.ModelProto:
        """new: what each cache's output adds for a token."""
        emitter, slots = rules.emitter, rules.slots
        axes = {each.past.name: each.axis for each in roles.caches}
        given = []
        for each in inputs:
            shape = list(_shape(each))
            if each.name in axes:
                shape[axes[each.name]] = slots.past
            else:
                shape[0] = self.tokens
            given.append(_value(each, shape))
        made = []
        for each in graph.output:
            if each.name in new:
                found = emitter.front(new[each.name])
                emitter.nodes.append(helper.make_node("Identity", [found.name], [each.name]))
                made.append(_value(each, (self.tokens, *found.shape)))
        nodes = _needed(emitter.nodes, new)
        result = onnx.ModelProto()
        result.CopyFrom(self.model)
        read = {name for node in nodes for name in node.input}
        constants = [*graph.initializer, *emitter.constants]
        weights = [each for each in constants if each.name in read]
        result.graph.CopyFrom(helper.make_graph(nodes, graph.name, given, made, weights))
        onnx.checker.check_model(result, full_check=True)
        return result


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Sizes; -1 where one is open."""
    sizes = value.type.tensor_type.shape.dim
    return tuple(each.dim_value if each.HasField("dim_value") else -1 for each in sizes)


def _signature(value: onnx.ValueInfoProto) -> TensorSignature:
    kind = element_type(value.type.tensor_type.elem_type)
    return TensorSignature(value.name, _shape(value), kind.value)


def _value(like: onnx.ValueInfoProto, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(like.name, like.type.tensor_type.elem_type, shape)


def _needed(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that outputs depend on."""
    wanted, found = set(outputs), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            found.append(node)
            wanted.update(node.input)
    return found[::-1]
