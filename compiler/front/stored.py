"""A model's file as a value, which other processes and caches can hold."""

from dovetail.isa.frozen import frozen

__all__ = ["StoredModel"]


@frozen
class StoredModel:
    """suffix: of the file, in small letters, which says the front end.  content: its bytes."""

    suffix: str
    content: bytes
