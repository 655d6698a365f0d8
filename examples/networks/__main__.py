"""Write a network, and samples to calibrate its quantisation with, as files.

python -m examples.networks resnet18 -o resnet18.onnx --images images.npz
"""

from pathlib import Path

import click
import numpy as np
import onnx

from . import NETWORKS, Options, bert_mini, build, calibration_images, calibration_tokens

TOKENS = 128


@click.command()
@click.argument("name", type=click.Choice([*NETWORKS, "bert_mini"]))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option("--images", type=click.Path(path_type=Path), help="FILE.npz of 8 random samples.")
@click.option("--size", default=224, show_default=True)
@click.option("--classes", default=1000, show_default=True)
@click.option("--width", default=1.0, show_default=True, help="Factor of inner channels.")
@click.option("--batch-norm", is_flag=True, help="Nodes of their own instead of biases.")
@click.option("--seed", default=0, show_default=True)
def main(
    name: str,
    output: Path,
    images: Path | None,
    size: int,
    classes: int,
    width: float,
    batch_norm: bool,
    seed: int,
) -> None:
    """Write the float network NAME; bert_mini takes 128 tokens, and no option but the seed."""
    if name == "bert_mini":
        onnx.save(bert_mini(TOKENS, seed), output)
        if images:
            np.savez(images, **calibration_tokens(8, TOKENS, seed))
        return
    options = Options(size, classes, width, batch_norm, seed)
    onnx.save(build(name, options), output)
    if images:
        np.savez(images, image=calibration_images(8, size, seed))


if __name__ == "__main__":
    main()
