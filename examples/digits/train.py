"""Train the digits network and write it as ``digits.onnx``; quantised to int8 per channel, as
``digits_int8.onnx``.

``make train`` runs it: it needs the extra ``train`` (JAX) and takes a minute on two cores.
Seeds are fixed; the last bits of the weights still depend on the machine's vector units.

The network: conv 3x3, 16; residual block of two 3x3, 16; depthwise 3x3 with stride 2; conv 1x1,
32; residual block of two 3x3, 32; average over all pixels; dense, 10.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from data import Digits, load
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.runtime import run

FLOAT = Path(__file__).parent / "digits.onnx"
OUTPUT = Path(__file__).parent / "digits_int8.onnx"
EPOCHS = 120
BATCH = 64
RATE = 3e-3
SEED = 1

Parameters = dict[str, jax.Array]

SHAPES = {
    "first": (3, 3, 1, 16),
    "a1": (3, 3, 16, 16),
    "a2": (3, 3, 16, 16),
    "depthwise": (3, 3, 1, 16),
    "point": (1, 1, 16, 32),
    "b1": (3, 3, 32, 32),
    "b2": (3, 3, 32, 32),
    "dense": (32, 10),
}


def initial(key: jax.Array) -> Parameters:
    """He initialisation."""
    parameters = {}
    for name, shape in SHAPES.items():
        key, draw = jax.random.split(key)
        fan_in = int(np.prod(shape[:-1]))
        parameters[f"{name}/w"] = jax.random.normal(draw, shape) * np.sqrt(2 / fan_in)
        parameters[f"{name}/b"] = jnp.zeros(shape[-1])
    return parameters


def forward(parameters: Parameters, x: jax.Array) -> jax.Array:
    """Logits float32[N, 10] of images float32[N, 8, 8, 1]."""

    def conv(x: jax.Array, name: str, stride: int = 1, groups: int = 1) -> jax.Array:
        pad = parameters[f"{name}/w"].shape[0] // 2
        y = jax.lax.conv_general_dilated(
            x,
            parameters[f"{name}/w"],
            (stride, stride),
            ((pad, pad), (pad, pad)),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return y + parameters[f"{name}/b"]

    x = jax.nn.relu(conv(x, "first"))
    x = jax.nn.relu(x + conv(jax.nn.relu(conv(x, "a1")), "a2"))
    x = jax.nn.relu(conv(x, "depthwise", 2, 16))
    x = jax.nn.relu(conv(x, "point"))
    x = jax.nn.relu(x + conv(jax.nn.relu(conv(x, "b1")), "b2"))
    return x.mean(axis=(1, 2)) @ parameters["dense/w"] + parameters["dense/b"]


def shifted(images: jax.Array, key: jax.Array) -> jax.Array:
    """Each image moved by up to one pixel in each direction."""
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    offsets = jax.random.randint(key, (len(images), 2), 0, 3)

    def cut(image: jax.Array, offset: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice(image, (offset[0], offset[1], 0), (8, 8, 1))

    return jax.vmap(cut)(padded, offsets)


def train(digits: Digits) -> Parameters:
    """Adam with a falling rate."""
    key = jax.random.PRNGKey(SEED)
    parameters = initial(key)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    steps = EPOCHS * (len(digits.train_images) // BATCH)

    def loss(parameters: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
        logs = jax.nn.log_softmax(forward(parameters, x))
        decay = sum((w**2).sum() for name, w in parameters.items() if name.endswith("/w"))
        return -logs[jnp.arange(len(y)), y].mean() + 1e-4 * decay

    @jax.jit
    def step(state: tuple, x: jax.Array, y: jax.Array, key: jax.Array) -> tuple:
        parameters, first, second, count = state
        gradient = jax.grad(loss)(parameters, shifted(x, key), y)
        rate = RATE * 0.5 * (1 + jnp.cos(jnp.pi * count / steps))
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, gradient)

        def move(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            m, v = m / (1 - 0.9 ** (count + 1)), v / (1 - 0.999 ** (count + 1))
            return p - rate * m / (jnp.sqrt(v) + 1e-8)

        return jax.tree.map(move, parameters, first, second), first, second, count + 1

    state = (parameters, zeros, zeros, 0)
    order = np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        shuffled = order.permutation(len(digits.train_images))
        for start in range(0, len(shuffled) - BATCH + 1, BATCH):
            chosen = shuffled[start : start + BATCH]
            key, draw = jax.random.split(key)
            images, labels = digits.train_images[chosen], digits.train_labels[chosen]
            state = step(state, images, labels, draw)
    return state[0]


def to_onnx(parameters: Parameters) -> onnx.ModelProto:
    """The float network as ONNX, NCHW."""
    nodes, constants = [], []

    def constant(name: str, array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def conv(x: str, name: str, stride: int = 1, groups: int = 1) -> str:
        weights = np.asarray(parameters[f"{name}/w"]).transpose(3, 2, 0, 1)
        pad = weights.shape[2] // 2
        inputs = [x, constant(f"{name}_w", weights)]
        inputs.append(constant(f"{name}_b", np.asarray(parameters[f"{name}/b"])))
        nodes.append(
            helper.make_node(
                "Conv",
                inputs,
                [name],
                name=name,
                kernel_shape=weights.shape[2:],
                strides=[stride] * 2,
                pads=[pad] * 4,
                group=groups,
            )
        )
        return name

    def node(kind: str, inputs: list[str], out: str, **attributes: object) -> str:
        nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    x = node("Relu", [conv("image", "first")], "first_relu")
    inner = node("Relu", [conv(x, "a1")], "a1_relu")
    x = node("Relu", [node("Add", [x, conv(inner, "a2")], "a_add")], "a_relu")
    x = node("Relu", [conv(x, "depthwise", 2, 16)], "depthwise_relu")
    x = node("Relu", [conv(x, "point")], "point_relu")
    inner = node("Relu", [conv(x, "b1")], "b1_relu")
    x = node("Relu", [node("Add", [x, conv(inner, "b2")], "b_add")], "b_relu")
    x = node("GlobalAveragePool", [x], "average")
    x = node("Flatten", [x], "flat")
    weights = constant("dense_w", np.asarray(parameters["dense/w"]).T)
    bias = constant("dense_b", np.asarray(parameters["dense/b"]))
    node("Gemm", [x, weights, bias], "logits", transB=1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def quantized(model: onnx.ModelProto, digits: Digits) -> onnx.ModelProto:
    """The model in int8, calibrated with every training image."""
    images = digits.train_images.transpose(0, 3, 1, 2)
    return quantize_model(model, ({"image": image[None]} for image in images)).model


def accuracy(model: onnx.ModelProto, digits: Digits) -> float:
    """Share of the test split that the integer model gets right."""
    module = compile(model, "cpu")
    images = np.ascontiguousarray(digits.test_images.transpose(0, 3, 1, 2))
    results = [run(module, {"image": image[None]}, "cpu") for image in images]
    logits = np.concatenate([result.outputs["logits"] for result in results])
    return float((logits.argmax(axis=1) == digits.test_labels).mean())


def main() -> None:
    """Train, quantise, write, and print both accuracies."""
    digits = load()
    parameters = train(digits)
    for name, images, labels in (
        ("training", digits.train_images, digits.train_labels),
        ("test", digits.test_images, digits.test_labels),
    ):
        right = np.asarray(forward(parameters, images)).argmax(axis=1) == labels
        print(f"float32, {name} split: {right.mean():.4f}")
    trained = to_onnx(parameters)
    onnx.save(trained, FLOAT)
    model = quantized(trained, digits)
    onnx.save(model, OUTPUT)
    print(f"int8, test split: {accuracy(model, digits):.4f}")
    print(f"wrote {OUTPUT.name}, {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
