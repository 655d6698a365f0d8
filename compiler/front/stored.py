"""A model's file as a value, which other processes and caches can hold."""

from dataclasses import dataclass

__all__ = ["StoredModel"]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """suffix: of the file, in small letters, which says the front end.  content: its bytes."""

    suffix: str
    content: bytes
