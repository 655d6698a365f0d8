"""Map the folder ``package`` to the import package ``dovetail``, and the other top-level folders to
its subpackages; the rest is in pyproject.toml.
"""

from setuptools import find_packages, setup

ROOTS = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler")

setup(
    package_dir={"dovetail": "package", **{f"dovetail.{root}": root for root in ROOTS}},
    packages=["dovetail"]
    + [
        f"dovetail.{package}"
        for root in ROOTS
        for package in (root, *(f"{root}.{sub}" for sub in find_packages(root)))
    ],
    package_data={
        "dovetail": ["py.typed"],
        "dovetail.vta_hw": ["*.cpp"],
        "dovetail.vta_sim.native": ["*.code"],
        "dovetail.bitstreams": ["*.cpp", "*/manifest.json"],
        "dovetail.compiler.cli.explore": ["web/*"],
        "dovetail.compiler.cli.export": ["web/*"],
        "dovetail.compiler.cli.profile": ["web/*"],
        "dovetail.compiler.explore": ["*.json", "*.toml"],
        "dovetail.compiler.targets.gpu.source": ["*.wgsl"],
        "dovetail.compiler.tune": ["*.json", "*.npz"],
    },
)
