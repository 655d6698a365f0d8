"""Options of compiling that say nothing to some targets: for those an error, not silence."""

from collections.abc import Collection

import click
from click.core import ParameterSource

__all__ = ["GPUS", "effort_option", "require_cpu_code", "require_target"]

GPUS = ("opencl", "cuda", "webgpu")
"""Targets whose modules are kernels."""

ON_CPU = ("threads", "cpu_level", "no_winograd", "most_work")
"""Options of code for the CPU: for a whole model, or for the part that an accelerator leaves."""

TARGETS = {
    **dict.fromkeys(("plans", "effort"), ("vta",)),
    **dict.fromkeys(ON_CPU, ("cpu", "vta")),
    "most_work": ("cpu", "vta", *GPUS),
    "gpu": GPUS,
}
"""The targets that an option is for, by the first word of their names."""

effort_option = click.option(
    "--effort",
    type=click.FloatRange(0, 100),
    default=1,
    show_default=True,
    help="How many programs to try for a fast one (vta); 0 compiles fastest.",
)


def require_target(target: str) -> None:
    """Refuse the first option on the command line that is for other targets.

    Raises click.UsageError.
    """
    for name, targets in TARGETS.items():
        if _is_given(name) and target.partition(":")[0] not in targets:
            *others, last = targets
            listed = f"{', '.join(others)} or {last}" if others else last
            raise click.UsageError(f"{_option(name)} is for --target {listed}, not {target}")


def require_cpu_code(targets: Collection[str]) -> None:
    """Refuse options for code on the CPU where no part of a module is such code.

    targets: of the parts.  Raises click.UsageError.
    """
    given = [_option(name) for name in ON_CPU if _is_given(name)]
    if given and all(each.partition(":")[0] == "vta" for each in targets):
        raise click.UsageError(
            f"{given[0]} is for code on the CPU, and all of the model runs on the accelerator; "
            "leave it out"
        )


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
