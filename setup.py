"""Map the top-level folders to the import package ``dovetail``; the rest is in pyproject.toml."""

from setuptools import find_packages, setup

ROOTS = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler")

setup(
    package_dir={f"dovetail.{root}": root for root in ROOTS},
    packages=[
        f"dovetail.{package}"
        for root in ROOTS
        for package in (root, *(f"{root}.{sub}" for sub in find_packages(root)))
    ],
    package_data={
        "dovetail.vta_hw": ["*.cpp"],
        "dovetail.bitstreams": ["*.cpp"],
        "dovetail.compiler.explore": ["*.json", "*.toml"],
        "dovetail.compiler.tune": ["*.json", "*.npz"],
    },
)
