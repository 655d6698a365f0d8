"""Searches of a few dozen trials."""

import pytest

from dovetail.compiler.tune.experience import Experience, shipped_experience


@pytest.fixture(autouse=True)
def little_experience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the experience that comes with the project: a search learns from all of it anew
    after every few trials.
    """
    whole = shipped_experience()
    assert whole is not None
    part = Experience(whole.rows[::10], whole.targets[::10])
    monkeypatch.setattr("dovetail.compiler.tune.subject.shipped_experience", lambda: part)
