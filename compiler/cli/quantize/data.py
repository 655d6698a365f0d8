"""The options that say how files become samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..decoders import roles_options, tokenizer_option
from ..paths import PATH

if TYPE_CHECKING:
    from dovetail.runtime.generate.decoder import Decoder
    from dovetail.runtime.generate.roles import Named

    from ...front.source import Normalization
    from ...quantize.data import Dataset
    from ...quantize.data.dataset import Source
    from ...quantize.data.texts import ReadText
    from ...quantize.signature import Signature

__all__ = ["Given", "data_options"]

Values = tuple[float, ...]


@dataclass(frozen=True)
class Given:
    """Files of samples and labels, and what is done to pictures, sounds and texts.

    scale, mean, std: None where nothing is given.  named: the roles of a decoder's tensors.
    """

    data: Path
    labels: Path | None
    classes: Path | None
    resize: tuple[int, ...] | None
    crop: bool
    scale: float | None
    mean: Values | None
    std: Values | None
    bgr: bool
    tokenizer: Path | None
    named: "Named"

    @property
    def normalizes(self) -> bool:
        """True if options give a scale, a mean or a divisor."""
        return any(each is not None for each in (self.scale, self.mean, self.std))

    def read(
        self, model: object, inputs: Sequence["Signature"], own: "Normalization | None" = None
    ) -> "Dataset":
        """The samples; own: what the model says of pixels, for where the options do not.

        model: in float, with these inputs.  Raises CalibrationError when they do not fit
        ``inputs``, or are texts and the model is not a decoder.
        """
        from ...quantize.data import Preparation, read_data

        how = Preparation(self.resize, self.crop, bgr=self.bgr)
        if own is not None and not self.normalizes:
            how = replace(how, scale=1.0, mean=own.mean, std=own.std)
        given = {"scale": self.scale, "mean": self.mean, "std": self.std}
        how = replace(how, **{name: each for name, each in given.items() if each is not None})  # type: ignore[arg-type]
        files = {"labels": self.labels, "classes": self.classes}
        return read_data(self.data, inputs, how, **files, texts=self._texts(model))

    def _texts(self, model: object) -> "ReadText":
        """Reads texts by the model, a decoder; it is compiled for this CPU if there are any."""

        @cache
        def decoder() -> "Decoder":
            from dovetail.runtime import Session
            from dovetail.runtime.errors import ModuleError
            from dovetail.runtime.generate.decoder import Decoder

            from ...driver import compile_model
            from ...errors import CalibrationError

            try:
                return Decoder(Session(compile_model(model, "cpu")), self.named)
            except ModuleError as error:
                raise CalibrationError(f"text {self.data}: {error}") from None

        def read(name: str, path: Path) -> "Source":
            from dovetail.runtime.generate.tokenizer import open_tokenizer

            from ...quantize.data.texts import text_source

            return text_source(name, path, decoder(), open_tokenizer(self.tokenizer))

        return read


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options; the command gets them as ``given``."""

    @wraps(command)
    def wrapped(**values: Any) -> Any:
        own = {name: values.pop(name) for name in Given.__dataclass_fields__}
        return command(given=Given(**own), **values)

    found = roles_options(wrapped)
    for option in reversed(OPTIONS):
        found = option(found)
    return found


class _Sizes(click.ParamType):
    """``256``, the shorter side, or ``224x320``, height and width."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        parts = str(value).split("x")
        if len(parts) > 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"{value!r}; required SIZE or HEIGHTxWIDTH", param, ctx)
        return tuple(map(int, parts))


class _Values(click.ParamType):
    """``0.5``, ``1/255``, or one value a channel with commas between."""

    name = "values"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Values:
        try:
            found = tuple(_number(part) for part in str(value).split(","))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r}; required numbers with commas between", param, ctx)
        return found


class _Factor(_Values):
    """One number that is not 0."""

    name = "number"

    def convert(  # type: ignore[override]
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = super().convert(value, param, ctx)
        if len(found) != 1 or not found[0]:
            self.fail(f"{value!r}; required one number that is not 0", param, ctx)
        return found[0]


class _Deviations(_Values):
    """Values that are not 0."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Values:
        found = super().convert(value, param, ctx)
        if not all(found):
            self.fail(f"{value!r}; required numbers that are not 0", param, ctx)
        return found


def _number(text: str) -> float:
    above, _, below = text.partition("/")
    found = float(above) / float(below) if below else float(above)
    if found != found or abs(found) == float("inf"):
        raise ValueError(text)
    return found


OPTIONS = (
    click.option(
        "--data",
        type=PATH,
        required=True,
        help="Real inputs: FILE.npz, FILE.npy, or a folder of them, of pictures or of .wav; for "
        "a decoder also FILE.txt, or a folder of them.",
    ),
    click.option(
        "--labels",
        type=PATH,
        help="FILE.npy, .csv (file,label), or a file with one label a line.  Default: the folders.",
    ),
    click.option(
        "--classes", type=PATH, help="Names of the classes, one a line, for labels that are names."
    ),
    click.option(
        "--resize", type=_Sizes(), help="Size of pictures: the shorter side, or HEIGHTxWIDTH."
    ),
    click.option("--crop", is_flag=True, help="Cut out the middle, in the input's size."),
    click.option(
        "--scale", type=_Factor(), help="Factor of all pixels.  Default: the model's own, or 1/255."
    ),
    click.option(
        "--mean",
        type=_Values(),
        help="Subtracted from each channel.  Default: the model's own, or 0.",
    ),
    click.option(
        "--std",
        type=_Deviations(),
        help="Divisor of each channel.  Default: the model's own, or 1.",
    ),
    click.option("--bgr", is_flag=True, help="Channels in the order blue, green, red."),
    tokenizer_option,
)
