"""The estimate of what a cache misses, by touches whose answer is plain."""

from dovetail.runtime.profile.cpu import LINE, cache_misses, cache_sizes

KILO = 1024


def test_what_fits_is_missed_once_and_then_never() -> None:
    """The first run fills the cache; the second is counted."""
    assert cache_misses([[("memory", 0, 4 * KILO)], [("memory", 0, 4 * KILO)]], 8 * KILO) == [0, 0]


def test_what_does_not_fit_is_missed_whenever_it_is_touched() -> None:
    calls = [[("constant 0", 0, 16 * KILO)], [("constant 1", 0, 16 * KILO)]]
    assert cache_misses(calls, 8 * KILO) == [16 * KILO // LINE] * 2


def test_what_was_touched_longest_ago_makes_room() -> None:
    a, b, c = (("constant 0", 0, 4 * KILO), ("constant 1", 0, 4 * KILO), ("input 0", 0, 4 * KILO))
    # After a run the cache holds a and c; b takes the place of c.
    assert cache_misses([[a], [b], [a], [c]], 8 * KILO) == [0, 64, 0, 64]


def test_parts_of_one_memory_are_told_apart_by_their_bytes() -> None:
    calls = [[("memory", 0, 100)], [("memory", 50, 200)], [("output 0", 0, 64 * KILO)]]
    # Bytes 0 to 99 are two lines; the second call finds its first 1024 bytes there already.
    assert cache_misses(calls, 8 * KILO) == [2, 0, KILO]


def test_this_machine_has_a_small_and_a_large_cache() -> None:
    first, second = cache_sizes()
    assert 4 * KILO <= first < second
