"""The ``.pt2`` files beside this, with inputs and torch's results: run where torch is installed.

``python -m tests.compiler.front.torch.make [NAME ...]`` from the repository.  Traces of the source
are left out, and so are the sample inputs, which are a pickle.
"""

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export, save
from torch.nn import functional
from torch.utils import _pytree as pytree

FOLDER = Path(__file__).parent / "models"


class Counter(nn.Module):
    """Writes to a buffer, to parts of a tensor, and has an open batch."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)
        self.register_buffer("count", torch.zeros(1))
        self.slope = torch.arange(4.0).flip(0)[::2].repeat(2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        self.count += 1
        y = torch.relu(self.first(x))
        y[:, 2:5] = 0.5
        y[0].mul_(2)
        y.view(-1, 2, 4)[:, 1, ::2] -= 3
        return {"scaled": self.second(y) * self.slope, "seen": self.count * x.shape[0]}


class Pictures(nn.Module):
    """A small convolutional network with branches."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding="same", groups=8)
        self.point = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(16, 5)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu_(self.norm(self.first(x)))
        x = x + functional.hardswish(self.point(self.depthwise(x)))
        small = functional.max_pool2d(x, 3, 2, 1, ceil_mode=True)
        large = functional.interpolate(
            small, scale_factor=2.0, mode="bilinear", align_corners=False
        )
        parts = [functional.adaptive_avg_pool2d(each, 1).flatten(1) for each in (small, large)]
        return functional.log_softmax(self.last(torch.cat(parts, 1)), -1)


class Words(nn.Module):
    """A block of a transformer over tokens, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
        self.before, self.after = nn.LayerNorm(16), nn.LayerNorm(16)
        self.all, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        q, k, v = self.all(self.before(x)).unflatten(-1, (3, 4, 4)).unbind(2)
        heads = (each.transpose(1, 2) for each in (q, k, v))
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        x = x + self.down(functional.gelu(self.up(self.after(x))))
        return (x @ self.tokens.weight.t()).argmax(-1)


class Regions(nn.Module):
    """Parts with gradients and without autocast, one in the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            y = self.first(x)
            with torch.autocast("cpu", enabled=False):
                z = torch.tanh(y) * y
            total = z.sum(1)
        return self.second(z) + y, total, y


class Bags(nn.Module):
    """Sums, means and maxima of lists of rows, and rows that are made shorter."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = nn.EmbeddingBag(9, 4, mode="sum")
        self.means = nn.EmbeddingBag(9, 4, mode="mean", padding_idx=2, include_last_offset=True)
        self.maxima = nn.EmbeddingBag(9, 4, mode="max", padding_idx=-1)
        self.rows = nn.Embedding(9, 4, max_norm=1.5)

    def forward(
        self, words: Tensor, offsets: Tensor, weights: Tensor, lists: Tensor
    ) -> tuple[Tensor, ...]:
        summed = self.sums(words, offsets, weights)
        meant = self.means(words, offsets)
        return summed, meant, self.maxima(words, offsets), self.maxima(lists), self.rows(lists)


class Sequences(nn.Module):
    """Recurrent layers and cells of every kind: two layers, both directions, a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.projected = nn.LSTM(8, 6, proj_size=3, bidirectional=True)
        self.gru = nn.GRU(6, 4, bidirectional=True)
        self.tanh, self.relu = nn.RNN(8, 3, bias=False), nn.RNN(3, 4, nonlinearity="relu")
        self.cells = nn.ModuleList([nn.LSTMCell(4, 3), nn.GRUCell(3, 4), nn.RNNCell(4, 2)])
        self.last = nn.RNNCell(2, 8, nonlinearity="relu")

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        y, states = self.lstm(x)
        y, projected = self.projected(y.transpose(0, 1), (h, c))
        y, gru = self.gru(y)
        y, tanh = self.tanh(y)
        y, relu = self.relu(y)
        first, second, third = self.cells
        cell = first(y[-1])
        last = self.last(third(second(cell[0])))
        return (y, *states, *projected, gru, tanh, relu, *cell, last)


class Residual(nn.Module):
    """Convolutions, a sum and a dense layer, to be quantised."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.last = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu_(self.norm(self.first(x))), 2)
        x = functional.relu(self.second(x) + x)
        return self.last(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def quantised(name: str) -> None:
    """A program that PT2E quantised, a scale for each channel of weights."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    settings = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(settings)
    x = torch.randn(1, 3, 8, 8)
    observed = prepare_pt2e(export(Residual().eval(), (x,)).module(), quantizer)
    for _ in range(4):
        observed(torch.randn(1, 3, 8, 8))
    make(name, convert_pt2e(observed), x, trained=True)


def plain(program: ExportedProgram, path: Path) -> None:
    """Save a program without what tells of the machine it was made on."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / path.name
        save(program, written)
        content = written.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith(".pt") or "/.data/" in entry.filename:
                continue
            if "/models/" in entry.filename:
                document = json.loads(data)
                for node in document["graph_module"]["graph"]["nodes"]:
                    node["metadata"] = {}
                document["graph_module"]["module_call_graph"] = []
                data = json.dumps(document, separators=(",", ":")).encode()
            new.writestr(zipfile.ZipInfo(entry.filename), data)


def arrays(values: Any) -> list[np.ndarray[Any, Any]]:
    """The tensors of nested values."""
    found = pytree.tree_flatten(values)[0]
    return [each.detach().numpy().copy() for each in found if isinstance(each, Tensor)]


def make(
    name: str,
    model: nn.Module,
    *inputs: Tensor,
    decompose: bool = False,
    trained: bool = False,
    **more: Any,
) -> None:
    """One file, and the archive of inputs and results."""
    program = export(model if trained else model.eval(), inputs, **more)
    program = program.run_decompositions() if decompose else program
    FOLDER.mkdir(exist_ok=True)
    plain(program, FOLDER / f"{name}.pt2")
    given, results = arrays(inputs), arrays(program.module()(*inputs))
    named = {f"input{n:02}": each for n, each in enumerate(given)}
    named |= {f"output{n:02}": each for n, each in enumerate(results)}
    np.savez(FOLDER / f"{name}.npz", **named)


LISTS = (
    torch.tensor([1, 2, 4, 5, 2, 8, 3, 0]),
    torch.tensor([0, 3, 3, 4, 5]),
    torch.randn(8),
    torch.tensor([[1, 2], [8, 8]]),
)
SEQUENCE = torch.randn(2, 3, 5), torch.randn(2, 2, 3), torch.randn(2, 2, 6)

MODELS: dict[str, Callable[[str], None]] = {
    "bags": lambda name: make(name, Bags(), *LISTS),
    "counter": lambda name: make(
        name,
        Counter(),
        torch.randn(3, 6),
        dynamic_shapes={"x": {0: Dim("batch", min=1, max=64)}},
    ),
    "pictures": lambda name: make(name, Pictures(), torch.randn(1, 3, 18, 18)),
    "pictures_core": lambda name: make(name, Pictures(), torch.randn(1, 3, 18, 18), decompose=True),
    "quantised": quantised,
    "regions": lambda name: make(name, Regions(), torch.randn(3, 6)),
    "sequences": lambda name: make(name, Sequences(), *SEQUENCE),
    "words": lambda name: make(name, Words(), torch.randint(0, 20, (2, 8))),
    "words_core": lambda name: make(name, Words(), torch.randint(0, 20, (2, 8)), decompose=True),
}

if __name__ == "__main__":
    with torch.no_grad():
        for chosen in sys.argv[1:] or MODELS:
            torch.manual_seed(1)
            MODELS[chosen](chosen)
