"""Arrays that commands make themselves."""

import numpy as np

from dovetail.compiler.cli.arrays import random_arrays
from dovetail.runtime.tensors import TensorSignature


def test_bytes_have_every_value_and_wider_integers_are_places_of_any_table() -> None:
    kinds = ("int8", "uint8", "int32", "int64", "float32", "bool")
    made = random_arrays([TensorSignature(kind, (-1, 4096), kind) for kind in kinds])
    assert {name: (array.dtype.name, array.shape) for name, array in made.items()} == {
        kind: (kind, (1, 4096)) for kind in kinds
    }
    assert len(np.unique(made["int8"])) == len(np.unique(made["uint8"])) == 256
    assert np.unique(made["int32"]).tolist() == np.unique(made["int64"]).tolist() == [0, 1]
    assert 0 <= made["float32"].min() < made["float32"].max() < 1
