"""Networks with random weights as ``.pt2`` files, with inputs and torch's results beside them.

``python export.py FOLDER [NAME ...]``, run where torch, torchvision, timm and transformers are.
"""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from architectures import SIZES, TIMM, TORCHVISION, TRANSFORMERS

SIZE = 96
INPUTS = {
    "picture": lambda: torch.randn(1, 3, 32, 32),
    "sound": lambda: torch.randn(1, 1600),
    "tokens": lambda: torch.randint(3, 90, (1, 12)),
}


class First(torch.nn.Module):
    """A model of transformers with one result."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.model(x, return_dict=True)
        return found.logits if hasattr(found, "logits") else found.last_hidden_state


def settle(model: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    """The model with running statistics of its own activations, and random numbers in place of
    weights that begin as 0, so that its results are not 0."""
    model.eval()
    for weight in model.parameters():
        if weight.ndim > 1 and not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    for each in model.modules():
        if isinstance(each, torch.nn.modules.batchnorm._BatchNorm) and each.track_running_stats:
            each.train()
            each.momentum = None
    model(torch.randn(4, *x.shape[1:]))
    return model.eval()


def torchvision_model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A network for pictures of ``SIZE``, and one."""
    import torchvision

    more = {"vit_b_16": {"image_size": SIZE}, "inception_v3": {"init_weights": False},
            "googlenet": {"init_weights": False, "aux_logits": False}}  # fmt: skip
    model = torchvision.models.get_model(name, weights=None, **more.get(name, {}))
    x = torch.randn(1, 3, *[SIZES.get(name, SIZE)] * 2)
    return settle(model, x), x


def timm_model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """As ``torchvision_model``."""
    import timm

    try:
        model = timm.create_model(name, pretrained=False, img_size=SIZES.get(name, SIZE))
    except TypeError:
        model = timm.create_model(name, pretrained=False)
    x = torch.randn(1, 3, *[SIZES.get(name, SIZE)] * 2)
    return settle(model, x), x


def transformers_model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A small transformer, and what it reads."""
    transformers = importlib.import_module("transformers")
    kind, settings = TRANSFORMERS[name]
    stem = re.sub(r"(For[A-Z]\w+|LMHead|Encoder)?(Model)?$", "", name)
    config = getattr(transformers, f"{stem}Config")(**settings)
    model = First(getattr(transformers, name)(config)).eval()
    return model, INPUTS[kind]()


FAMILIES: dict[str, tuple[tuple[str, ...], Callable[[str], tuple[torch.nn.Module, torch.Tensor]]]]
FAMILIES = {
    "torchvision": (TORCHVISION, torchvision_model),
    "timm": (TIMM, timm_model),
    "transformers": (tuple(TRANSFORMERS), transformers_model),
}


def wanted(names: list[str]) -> Iterator[tuple[str, str]]:
    """Families and names."""
    for family, (known, _) in FAMILIES.items():
        yield from ((family, name) for name in known if not names or name in names)


def main() -> None:
    """Export what is not there yet."""
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family, name in wanted(sys.argv[2:]):
        path = folder / f"{family}.{name}.pt2"
        if path.with_suffix(".npz").exists():
            continue
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                model, x = FAMILIES[family][1](name)
                torch.export.save(torch.export.export(model, (x,)), path)
                result = model(x)
        except Exception as error:
            print(f"{family} {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            path.unlink(missing_ok=True)
            continue
        if result.std() < 1e-6:
            print(f"{family} {name}: its result is nearly the same everywhere", flush=True)
        np.savez(path.with_suffix(".npz"), x=x.numpy(), y=result.numpy())
        print(f"{family} {name}", flush=True)


main()
