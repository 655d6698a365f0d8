"""The results that need not be computed: those of the folder, and of the user's cache."""

from pathlib import Path

from dovetail.isa.cache import cache_directory

from ..errors import ExploreError
from .evaluate import Failure, Performance
from .store import ResultFile

__all__ = ["KnownResults"]

CACHE = "explore.sqlite"


class KnownResults:
    """``kept`` is the folder's file.  The cache is left out from its first error on; ``notes`` then
    says why.
    """

    def __init__(self, kept: ResultFile, use_cache: bool) -> None:
        self._kept = kept
        self._cache: ResultFile | None = None
        self.notes: list[str] = []
        if use_cache:
            try:
                self._cache = ResultFile(cache_directory() / CACHE)
            except (ExploreError, OSError) as error:
                self._give_up(error)

    def require_same(self, about: dict[str, str], folder: Path) -> None:
        """Say what the folder's results are for, or hold it to what it says.

        Raises ExploreError when it has results of something else.
        """
        there = self._kept.about()
        other = [name for name, value in there.items() if about.get(name) != value]
        if other and self._kept.count():
            raise ExploreError(
                f"{folder} holds {self._kept.count()} results with different "
                f"{' and '.join(other)}; choose another folder, or remove this one"
            )
        self._kept.describe(about)

    def find(self, key: str) -> Performance | Failure | None:
        """The result with this key; one that only the cache has is put into the folder's file.

        That a process died is none: it is tried again.
        """
        result = self._kept.find(key)
        if isinstance(result, Failure) and result.kind == "WorkerDied":
            result = None
        if result is None and self._cache:
            try:
                result = self._cache.find(key)
            except ExploreError as error:
                self._give_up(error)
            if result is not None:
                self._kept.put(key, result)
        return result

    def put(self, key: str, result: Performance | Failure) -> None:
        """Keep ``result``.  Raises ExploreError when the folder's file cannot be written."""
        self._kept.put(key, result)
        # Whether a process dies depends on the machine, not on the design.
        passing = isinstance(result, Failure) and result.kind == "WorkerDied"
        if self._cache and not passing:
            try:
                self._cache.put(key, result)
            except ExploreError as error:
                self._give_up(error)

    def close(self) -> None:
        """Let go of both files."""
        self._kept.close()
        if self._cache:
            self._cache.close()

    def _give_up(self, error: Exception) -> None:
        self._cache = None
        self.notes.append(f"goes on without the cache of results: {error}")
