"""Trying many accelerators and schedules on given models, and finding the best trade-offs."""

from .exploration import Exploration, explore
from .space import Space, load_space

__all__ = ["Exploration", "Space", "explore", "load_space"]
