"""The command ``dovetail generate``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .arrays import dimensions_option, read_dimensions
from .decoders import roles_options, tokenizer_option
from .output import clear_errors, human, json_option, print_json, printable, progress
from .paths import PATH
from .target_options import effort_option, require_target

if TYPE_CHECKING:
    from dovetail.runtime.generate.generator import Generator, Story
    from dovetail.runtime.generate.roles import Named

__all__ = ["generate"]


@click.command()
@click.argument("model", type=PATH)
@click.option("--prompt", default="", help="The beginning of the text.")
@tokenizer_option
@click.option(
    "--target", default="vta", help="Target, if MODEL is not a module.", show_default=True
)
@click.option("--device", help="sim, rtl, cpu or opencl. Default: the first that can run it.")
@click.option(
    "--steps",
    type=click.IntRange(0),
    help="Most tokens after the prompt. Default: until the model ends the text.",
)
@click.option(
    "--temperature",
    type=float,
    default=0.0,
    help="Draw tokens by softmax(logits / temperature); 0: take the likeliest.",
    show_default=True,
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, help="Seed of the drawn tokens.", show_default=True
)
@dimensions_option
@click.option(
    "--blocks",
    metavar="NUMBER|FILE",
    help="Read the prompt in blocks of NUMBER tokens (17, 33, ...), or with the FILE.dvt that "
    "compile --tokens made of this model.",
)
@effort_option
@roles_options
@json_option
@clear_errors
def generate(
    model: Path,
    prompt: str,
    tokenizer: Path | None,
    target: str,
    device: str | None,
    steps: int | None,
    temperature: float,
    seed: int,
    dims: tuple[str, ...],
    blocks: str | None,
    effort: float,
    named: "Named",
    as_json: bool,
) -> None:
    """Continue a text with MODEL, a language model (.dvt, or a model, which is compiled first).

    MODEL takes one token a run, and has caches of keys and values, which this command keeps.
    """
    from dovetail.runtime.generate.generator import Generator
    from dovetail.runtime.generate.sampling import sampler
    from dovetail.runtime.generate.tokenizer import open_tokenizer

    from .building import build_for
    from .programs import open_blocks, open_module, opening

    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not text in UTF-8", param_hint="--prompt") from None
    require_target(target)
    choose = sampler(temperature, seed)
    reads = open_tokenizer(tokenizer) if tokenizer else None
    with progress(f"{opening(model)} {model.name}"):
        module = open_module(model, target, dims=read_dimensions(dims), effort=effort)
        reader = None
        if blocks is not None:
            reader = open_blocks(blocks, model, target, named, read_dimensions(dims), effort)
    if device:
        build_for(module, device)
    with Generator(module, reads, device, named, reader) as generator:
        pieces = generator.stream(prompt, steps, choose)
        if as_json:
            with progress(f"generating with {model.name}"):
                for _ in pieces:
                    pass
            print_json({"model": str(model), **generator.story.figures()})
            return
        for piece in pieces:
            click.echo(printable(piece), nl=False)
        click.echo()
        human.print(_summary(generator.story, generator))


def _summary(story: "Story", generator: "Generator") -> str:
    """The figures of a text, in words."""
    counted = f"{len(story.tokens)} tokens, {story.prompted} of them the prompt's"
    capacity = generator.decoder.roles.capacity
    if generator.decoder.is_full:
        counted += f"; all {capacity} positions of the caches are taken"
    if story.blocks:
        blocks = "one block" if story.blocks == 1 else f"{story.blocks} blocks"
        counted += f"; {story.block_tokens} of these read in {blocks}"
        if story.clock_hz:
            counted += f", {story.block_cycles / story.block_tokens:,.0f} cycles each"
    which = "each other one" if story.blocks else "each"
    rate = f"{story.tokens_per_second:,.1f} tokens a second"
    if not story.clock_hz or not story.runs:
        return f"{counted}; {rate} on {generator.decoder.session.device}"
    cycles, moved, count = (
        f"{total / story.runs:,.0f}" for total in (story.cycles, story.dram_bytes, story.launches)
    )
    launches = "one launch" if count == "1" else f"{count} launches"
    return (
        f"{counted}; {which} takes {cycles} cycles in {launches}, and moves {moved} bytes "
        f"of DRAM\n{rate} at {story.clock_hz / 1e6:g} MHz, if nothing else took time; what is "
        f"beside the accelerator takes {1e3 * story.host_seconds / story.runs:.2f} ms a token on "
        "this CPU"
    )
