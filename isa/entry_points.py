"""Additions of other installed packages, found by their entry points.

They are read when somebody asks for a name that this package does not have; nothing is imported
but the object of that name.
"""

from importlib.metadata import entry_points

from .errors import DovetailError

__all__ = ["ExtensionError", "find_outside", "names_outside"]


class ExtensionError(DovetailError):
    """An addition of another package cannot be used; the message names the package."""


def names_outside(group: str) -> tuple[str, ...]:
    """Names of the entry points of a group, sorted."""
    return tuple(sorted({each.name for each in entry_points(group=group)}))


def find_outside(group: str, name: str) -> tuple[object, str] | None:
    """The object of an entry point, and who brings it, for messages; None when there is none.

    Raises ExtensionError when two packages bring one, or it cannot be imported.
    """
    found = {each.value: each for each in entry_points(group=group, name=name)}
    if not found:
        return None
    brought = [f"{each.value} of {each.dist.name if each.dist else '?'}" for each in found.values()]
    if len(found) > 1:
        raise ExtensionError(
            f"{group} {name!r}: {' and '.join(brought)} bring it; required one; uninstall the other"
        )
    (entry,) = found.values()
    try:
        return entry.load(), brought[0]
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ExtensionError(
            f"{group} {name!r}: {brought[0]} cannot be imported: {error}; mend or uninstall it"
        ) from error
