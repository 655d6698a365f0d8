"""Frozen classes are what ``dataclasses`` makes of the same text, at first use and later."""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields
from dataclasses import replace as standard_replace

import pytest

from dovetail.isa.frozen import KeepsHash, frozen, replace

STANDARD = dataclass(frozen=True, slots=True)


class _Point:
    x: int
    y: int = 7
    notes: list[str] = field(default_factory=list, hash=False)
    hidden: int = field(default=1, repr=False, compare=False)
    fixed: int = field(default=3, init=False)
    made: tuple[int, ...] = field(default_factory=tuple, init=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"x is {self.x}")


class _Further:
    z: int = 0
    last: int = field(default=9, kw_only=True)


Ours = frozen(type("Ours", (), dict(vars(_Point))))
Standard = STANDARD(type("Standard", (), dict(vars(_Point))))


@pytest.mark.parametrize("decorate", [frozen, STANDARD])
@pytest.mark.parametrize("base", [Ours, Standard])
def test_constructors_take_what_the_fields_say(base: type, decorate: Callable) -> None:
    cls = decorate(type("Further", (base,), dict(vars(_Further))))
    assert str(inspect.signature(cls)).startswith("(x: int, y: int = 7, notes: list[str] = ")
    made = cls(1, 2, hidden=4, last=5)
    assert repr(made) == "Further(x=1, y=2, notes=[], fixed=3, made=(), z=0, last=5)"
    assert made.hidden == 4
    assert made.notes is not cls(1).notes
    assert standard_replace(made, x=3, last=6) == cls(3, 2, last=6)
    assert asdict(cls(1))["made"] == ()
    with pytest.raises(ValueError, match="x is -1"):
        cls(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        cls()
    assert not hasattr(made, "__dict__")
    assert cls.__match_args__ == ("x", "y", "notes", "hidden", "z")


@pytest.mark.parametrize("cls", [Ours, Standard])
def test_fields_never_change(cls: type) -> None:
    made = cls(1)
    for change in (lambda: setattr(made, "x", 2), lambda: delattr(made, "x")):
        with pytest.raises(FrozenInstanceError, match="field 'x'"):
            change()
    assert made.x == 1


def test_instances_are_compared_and_hashed_by_their_fields() -> None:
    assert Ours(1, notes=["a"]) == Ours(1, notes=["a"], hidden=8)
    assert Ours(1) != Ours(2)
    assert Ours(1) != Standard(1)
    assert {Ours(1), Ours(1, notes=["a"]), Ours(2)} == {Ours(1), Ours(1, notes=["a"]), Ours(2)}
    assert hash(Ours(1, notes=["a"])) == hash(Standard(1)) == hash(Ours(1, hidden=3))


@pytest.mark.parametrize("decorate", [frozen, STANDARD])
def test_a_class_keeps_the_methods_of_its_own(decorate: Callable) -> None:
    @decorate
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    assert repr(Own(1)) == "own"
    assert Own(1) == Own(2)
    assert hash(Own(1)) != hash(Own(2))


def test_options_are_those_of_dataclasses() -> None:
    @frozen(kw_only=True)
    class Named:
        a: int
        b: int = 2

    @frozen(eq=False)
    class Itself:
        a: int

    assert repr(Named(a=1)).endswith("Named(a=1, b=2)")
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        Named(1)
    assert Itself(1) != Itself(1)
    assert hash(Itself(1)) != hash(Itself(1))


def test_a_replaced_field_leaves_the_others() -> None:
    made = Ours(1, notes=["a"], hidden=2)
    changed = replace(made, y=3)
    found = (changed.x, changed.y, changed.notes, changed.hidden)
    assert found == (1, 3, made.notes, 2)
    with pytest.raises(ValueError, match="x is -1"):
        replace(made, x=-1)
    with pytest.raises(TypeError, match="'fixed'"):
        replace(made, fixed=1)


def test_a_kept_hash_is_computed_once_and_stays_behind() -> None:
    class Part:
        asked = 0

        def __hash__(self) -> int:
            self.asked += 1
            return 5

    @frozen
    class Whole(KeepsHash):
        part: Part

    part = Part()
    whole = Whole(part)
    assert hash(whole) == hash(whole) == hash((part,))
    assert part.asked == 2
    assert whole == Whole(part)
    other = Whole.__new__(Whole)
    other.__setstate__(whole.__getstate__())
    assert hash(other) == hash(whole)
    assert part.asked == 3


def test_copies_are_whole() -> None:
    made = Ours(1, notes=["a"], hidden=2)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert [getattr(other, each.name) for each in fields(other)] == [1, 7, ["a"], 2, 3, ()]
