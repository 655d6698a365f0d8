"""Movements of pixels as pieces: put together again they are the movement."""

import numpy as np
import pytest

from dovetail.compiler.targets.vta.passes.pixel_pieces import (
    Indices,
    Picture,
    Piece,
    Run,
    numbers_of,
    pieces_of,
)

SIZE = 1, 4, 6, 8


def source(*size: int) -> Indices:
    return numbers_of(size, planes=False)[0]


def depth_to_space(x: Indices, by: int) -> Indices:
    height, width, channels = x.shape
    apart = x.reshape(height, width, by, by, channels // by**2)
    return apart.transpose(0, 2, 1, 3, 4).reshape(height * by, width * by, -1)


def space_to_depth(x: Indices, by: int) -> Indices:
    height, width, _ = x.shape
    apart = x.reshape(height // by, by, width // by, by, -1)
    return apart.transpose(0, 2, 1, 3, 4).reshape(height // by, width // by, -1)


def together(picture: Picture, x: Indices, shape: tuple[int, ...]) -> Indices:
    """The elements of ``x`` that the pieces name, where they put them; -1 elsewhere."""
    found = np.full(shape, -1)
    for (top, left), pieces in zip(picture.starts, picture.parts, strict=True):
        for piece in pieces:
            rows, columns = (
                run.start + run.step * np.arange(run.count) for run in (piece.rows, piece.columns)
            )
            down, across = (
                first + step * np.arange(run.count)
                for first, step, run in zip(
                    (top, left), picture.steps, (piece.rows, piece.columns), strict=True
                )
            )
            found[np.ix_(down, across, piece.places)] = x[np.ix_(rows, columns, piece.channels)]
    return found


X = source(*SIZE)
SHUFFLED = X[:, :, [0, 4, 1, 5, 2, 6, 3, 7]]
CASES: dict[str, tuple[Indices, int, tuple[int, int], int, int]] = {
    "as it is": (X, 1, (1, 1), 1, 0),
    "channels": (X[:, :, 2:5], 1, (1, 1), 1, 0),
    "shuffled channels": (SHUFFLED, 1, (1, 1), 1, 1),
    "every second column": (X[:, 1::2], 1, (1, 1), 1, 0),
    "blocks to channels": (space_to_depth(X, 2), 1, (1, 1), 4, 0),
    "channels to blocks": (depth_to_space(X, 2), 4, (2, 2), 4, 0),
    "rows turned about": (X[::-1], 4, (4, 1), 4, 0),
    "columns turned about": (X[:, ::-1], 6, (1, 6), 6, 0),
    "rolled": (np.roll(X, 2, 0), 2, (1, 1), 2, 0),
    "rolled both ways": (np.roll(X, (1, 2), (0, 1)), 4, (1, 1), 4, 0),
    "two stretches": (X[:, [0, 1, 2, 4, 5]], 2, (1, 1), 2, 0),
    "two images side by side": (np.concatenate([X, X], 1), 2, (1, 1), 2, 0),
    "rows twice": (np.repeat(X, 2, 0), 2, (2, 1), 2, 0),
    "one row": (X[2:3], 1, (1, 1), 1, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_pieces_put_together_are_the_movement(name: str) -> None:
    numbers, parts, steps, pieces, picked = CASES[name]
    found = pieces_of(numbers, SIZE[1:])
    assert found is not None
    assert (len(found.starts), found.steps, found.pieces, found.picked) == (
        *(parts, steps, pieces, picked),
    )
    assert np.array_equal(together(found, X, numbers.shape), numbers)


def test_a_piece_has_its_rows_columns_and_channels() -> None:
    found = pieces_of(space_to_depth(X, 2)[:, :, 8:16], SIZE[1:])
    piece = Piece(Run(0, 2, 2), Run(1, 2, 3), tuple(range(8)), tuple(range(8)))
    assert found == Picture(((0, 0),), (1, 1), ([piece],))


@pytest.mark.parametrize(("rows", "parts"), [(8, 8), (9, 9), (64, 64), (65, None)])
def test_an_image_has_at_most_64_parts(rows: int, parts: int | None) -> None:
    x = source(1, rows, 1, 2)
    found = pieces_of(x[::-1], x.shape)
    assert (found and len(found.starts)) == parts


@pytest.mark.parametrize(("channels", "few"), [(64, True), (65, False)])
def test_an_image_has_at_most_64_pieces(channels: int, few: bool) -> None:
    """Each channel of the result is another pixel."""
    x = source(1, 1, channels, 1)
    assert (pieces_of(x.reshape(1, 1, channels), x.shape) is not None) == few


def test_a_random_order_is_not_one_of_pieces() -> None:
    x = source(1, 10, 10, 2)
    mixed = np.random.default_rng(1).permutation(x.reshape(100, 2)).reshape(x.shape)
    assert pieces_of(mixed, x.shape) is None
    turned = x.copy()
    turned[3, 4] = turned[3, 4, ::-1]
    found = pieces_of(turned, x.shape)
    assert found is not None
    assert np.array_equal(together(found, x, x.shape), turned)


def test_elements_of_planes_are_numbered_as_those_of_pixels() -> None:
    assert numbers_of((1, 2, 2, 3), planes=True)[0, :, 0, 1].tolist() == [2, 3]
    assert numbers_of((1, 2, 2, 3), planes=False)[0, 0, 1].tolist() == [3, 4, 5]
