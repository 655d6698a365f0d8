"""A quantised decoder beside ONNX Runtime along given texts, with each reading its own caches and
with all reading ONNX Runtime's; and how far ONNX Runtime is from itself.

A byte that differs stays in the caches and moves all later rows, so two runs part sooner or later.
ONNX Runtime is therefore also run with one number of the first token's keys or values moved by a
step of int8: what that changes, no other arithmetic can be asked to keep.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnxruntime
from models import SHARED
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.runtime import Session
from dovetail.runtime.generate.decoder import Decoder

Array = NDArray[Any]
Run = Callable[[dict[str, Array]], dict[str, Array]]
STORIES = SHARED / "stories260k" / "stories260k_decode_int8.onnx"
STEP = 1 / 127
"""About a step of int8, of the largest number of a row of keys or values."""
TEXTS = SHARED / "stories260k" / "texts.json"


@dataclass(frozen=True, slots=True)
class Text:
    """A decoder's results along a text: logits ``[tokens, vocabulary]``, and the sum of the
    negative log likelihoods of the tokens that follow.
    """

    logits: Array
    surprise: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """A way to run the texts, beside ONNX Runtime's.

    greedy, rows: shares of the positions with the same likeliest token, and with the same logits.
    perplexity_change: relative to ONNX Runtime's.  error: its standard error, from text to text.
    """

    way: str
    perplexity: float
    perplexity_change: float
    error: float
    greedy: float
    rows: float


class Texts:
    """Runs texts through a decoder whose tensors are those of ``decoder``."""

    def __init__(self, decoder: Decoder, texts: Sequence[Sequence[int]]) -> None:
        self.decoder, self.roles, self.texts = decoder, decoder.roles, texts

    def along(self, run: Run, caches: Run | None = None, moved: int | None = None) -> list[Text]:
        """The texts by ``run``.

        caches: what the caches are filled by; ``run`` where it is None.
        moved: the number of the first token's first cache that is moved.
        """
        found = []
        for tokens in self.texts:
            self.decoder.reset()
            rows = []
            for position, token in enumerate(tokens):
                inputs = self.decoder.inputs(token)
                outputs = run(inputs)
                rows.append(outputs[self.roles.logits.name].reshape(-1).astype(np.float64))
                kept = outputs if caches is None else caches(inputs)
                if moved is not None and position == 0:
                    kept = self._moved(kept, moved)
                self.decoder.keep(kept)
            found.append(_text(np.array(rows), tokens))
        return found

    def _moved(self, outputs: dict[str, Array], index: int) -> dict[str, Array]:
        """``outputs`` with one number of the first cache's row moved by ``STEP``."""
        name = self.roles.caches[0].new.name
        row = outputs[name].copy()
        flat = row.reshape(-1)
        flat[index % flat.size] += STEP * np.abs(flat).max()
        return outputs | {name: row}


def _text(logits: Array, tokens: Sequence[int]) -> Text:
    high = logits[:-1] - logits[:-1].max(axis=1, keepdims=True)
    likely = high - np.log(np.exp(high).sum(axis=1, keepdims=True))
    return Text(logits, -float(likely[np.arange(len(tokens) - 1), tokens[1:]].sum()))


def compared(way: str, found: Sequence[Text], wanted: Sequence[Text]) -> Agreement:
    """``found`` beside ``wanted``, text by text."""
    counts = np.array([len(each.logits) - 1 for each in wanted])
    surprise = np.array([each.surprise for each in found])
    differences = surprise - np.array([each.surprise for each in wanted])
    rows = [(x.logits == y.logits).all(axis=1) for x, y in zip(found, wanted, strict=True)]
    greedy = [
        x.logits.argmax(axis=1) == y.logits.argmax(axis=1)
        for x, y in zip(found, wanted, strict=True)
    ]
    return Agreement(
        way,
        float(np.exp(surprise.sum() / counts.sum())),
        float(np.exp(differences.sum() / counts.sum()) - 1),
        float((differences / counts).std(ddof=1) / len(counts) ** 0.5) if len(counts) > 1 else 0.0,
        float(np.concatenate(greedy).mean()),
        float(np.concatenate(rows).mean()),
    )


def engine(model: Path, *, optimised: bool) -> Run:
    """ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


@click.command()
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False), default=STORIES)
@click.option("--texts", type=click.Path(path_type=Path, exists=True), default=TEXTS)
@click.option("--which", default="held_out", show_default=True, help="The texts in that file.")
@click.option("--most", default=256, show_default=True, help="Tokens of a text.")
@click.option("--moved", default=6, show_default=True, help="Runs with one number moved.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write figures here.")
def main(
    model: Path, texts: Path, which: str, most: int, moved: int, json_path: Path | None
) -> None:
    """Run the texts on the target cpu, whose bytes are the accelerator's, and ONNX Runtime."""
    tokens = [each["tokens"][:most] for each in json.loads(texts.read_text())[which]]
    optimised, plain = engine(model, optimised=True), engine(model, optimised=False)
    with Session(compile(model, "cpu")) as session:
        runs = Texts(Decoder(session), tokens)

        def ours(inputs: dict[str, Array]) -> dict[str, Array]:
            return dict(session.run(inputs).outputs)

        wanted = runs.along(optimised)
        ways: dict[str, Callable[[], list[Text]]] = {
            "Dovetail, ONNX Runtime's caches": lambda: runs.along(ours, optimised),
            "Dovetail, its own caches": lambda: runs.along(ours),
            "ONNX Runtime without optimisations": lambda: runs.along(plain),
        }
        for index in range(moved):
            ways[f"ONNX Runtime, cached number {5 * index + 1} moved"] = lambda index=index: (
                runs.along(optimised, moved=5 * index + 1)
            )
        found = [compared("ONNX Runtime", wanted, wanted)]
        with Console(stderr=True).status("running texts") as status:
            for way, run in ways.items():
                status.update(way)
                found.append(compared(way, run(), wanted))
    table = Table("", "greedy", "rows", "perplexity", "change", "its error")
    for each in found:
        change, error = f"{each.perplexity_change:+.2%}", f"{each.error:.2%}"
        shares = f"{each.greedy:.1%}", f"{each.rows:.1%}"
        table.add_row(each.way, *shares, f"{each.perplexity:.3f}", change, error)
    console = Console()
    console.print(f"{model.name}: {len(tokens)} texts, {sum(map(len, tokens))} tokens")
    console.print(table)
    if json_path:
        json_path.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
