"""Settings and fixtures that every test may use."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, settings
from networks import build, calibration_images

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.isa.finishes import OwnFinish, find_finish
from dovetail.runtime.module import Module

from .end_to_end.models import Network
from .exact_peer import exact_peer
from .native_yosys import write_program
from .once import made_once, plans_kept, short_searches
from .outside import LEAKY, install_folder
from .quick_builds import quickly_built
from .quick_code import quickly_optimised

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SEARCHES = tuple(
    ROOT / "tests" / "compiler" / name
    for name in ("cli/test_compile.py", "pipeline", "targets", "tune")
)
"""Tests to which it matters that a plan is searched for."""
QUICK = tuple(
    ROOT / "tests" / name
    for name in (
        *("compiler/checking", "compiler/cli", "compiler/debug", "compiler/front"),
        *("compiler/graph", "compiler/targets/vta", "compiler/translation"),
        *("compiler/test_driver.py", "compiler/test_user_passes.py", "contributing", "end_to_end"),
        *("operators", "runtime", "vta_sim"),
    )
)
"""Tests of results, which any plan has to give."""
THOROUGH = tuple(
    ROOT / "tests" / name
    for name in (
        *("compiler/cli/explore", "compiler/cli/test_compile.py"),
        *("compiler/cli/test_kept_reports.py", "compiler/targets/vta/test_effort.py"),
        "compiler/targets/vta/test_mutants.py",
        *("compiler/targets/vta/test_monotony_searched.py", "compiler/targets/vta/test_overlap.py"),
        *("compiler/targets/vta/test_plan_record.py", "compiler/targets/vta/test_roof.py"),
        *("end_to_end/test_mlperf_tiny.py", "end_to_end/test_whole_networks.py"),
    )
)
"""Tests among them of how good a plan is, or of faults put into the best one."""
CODE = tuple(ROOT / "tests" / "compiler" / name for name in ("program", "targets/cpu", "tune"))
"""Tests of machine code itself, or of the time that it takes."""
WEBGPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader")
"""Options that give a headless Chromium WebGPU, computed by the CPU."""

# The same examples every time, and no time limit: machines differ.  ``make test
# ARGS=--hypothesis-profile=thorough`` tries more.
settings.register_profile(
    "dovetail",
    max_examples=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("thorough", settings.get_profile("dovetail"), max_examples=500)
settings.load_profile("dovetail")

# Modules are compiled once, and not again in each of the hundreds of processes that tests start,
# whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Workers and other processes compute with one thread each: there are as many as cores, and threads
# of BLAS that wait for each other took a third of the time of quantising.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# Millions of objects come and go, nearly all without a circle: looking for circles after every 700
# took 30 % of the time of elaborating hardware.
gc.set_threshold(50_000, 10, 10)


def pytest_collection_finish() -> None:
    """Keep all that is imported and collected: circles are not looked for in it again."""
    gc.freeze()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which packages of others are imported, until the test ends."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    find_finish.cache_clear()
    yield folder
    find_finish.cache_clear()
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def leaky(packages: Path) -> OwnFinish:
    """The finish of ``examples/finish``, as if its package were installed."""
    install_folder(LEAKY, packages)
    return find_finish("leaky")


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """The quantised digits network of the repository."""
    return ROOT / "examples" / "digits" / "digits_int8.onnx"


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two convolutions and a dense layer, which compile in a fraction of a second."""
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(3, 8, 8), 16, pads=(1, 1, 1, 1), activation="Relu")
    x = net.conv(x, 16, strides=(2, 2), pads=(1, 1, 1, 1), activation="Relu")
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(net.model(net.dense(net.global_average(x), 10)), path)
    return path


@pytest.fixture(scope="session")
def one_layer_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One convolution: for tests of what is around compilations, and not of what they find."""
    net = Network(np.random.default_rng(0))
    path = tmp_path_factory.mktemp("model") / "one_layer.onnx"
    onnx.save(net.model(net.conv(net.input(3, 4, 4), 8, pads=(1, 1, 1, 1))), path)
    return path


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """The folder of real models beside the repository; skips when it is absent."""
    folder = ROOT.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip("no folder ../shared/models")
    return folder


@pytest.fixture(scope="session")
def resnet18_model(tmp_path_factory: pytest.TempPathFactory) -> onnx.ModelProto:
    """ResNet-18 at 224x224, quantised by two images."""

    def make(path: Path) -> None:
        samples = [{"image": image[None]} for image in calibration_images(2, 224)]
        onnx.save(quantize_model(build("resnet18"), samples).model, path)

    return onnx.load(made_once(tmp_path_factory, "resnet18.onnx", make))


@pytest.fixture(scope="session")
def resnet18_module(
    resnet18_model: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory
) -> Module:
    """It, compiled for zynq7020."""

    def make(path: Path) -> None:
        compile(resnet18_model, "vta:zynq7020").save(path)

    return Module.load(made_once(tmp_path_factory, "resnet18.dvt", make))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium, the only one in a process, as Playwright wants it; skips when there is
    none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} on PATH")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", *WEBGPU]
        )
        yield running
        running.close()


@pytest.fixture(scope="module", autouse=True)
def quick_plans(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A plan is searched for once for each network, however many tests compile it; and shortly.
    Machine code is optimised little."""

    def inside(places: tuple[Path, ...]) -> bool:
        return any(request.path.is_relative_to(place) for place in places)

    with ExitStack() as stack:
        if not inside(SEARCHES):
            stack.enter_context(plans_kept(tmp_path_factory))
        if inside(QUICK) and not inside(THOROUGH):
            stack.enter_context(short_searches())
        if not inside(CODE):
            stack.enter_context(quickly_optimised())
        yield


@pytest.fixture(scope="session", autouse=True)
def exact_sums() -> Iterator[None]:
    """ONNX Runtime's integer sums are exact on every CPU."""
    with exact_peer():
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_builds() -> Iterator[None]:
    """Simulations of RTL are built quickly."""
    with quickly_built():
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waits_for_disks() -> Iterator[None]:
    """Writes are not flushed to disk: files need not outlive the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def native_yosys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """Yosys as machine code, where it is installed: it starts at once on a new machine."""
    if find_spec("pyosys") is None or os.environ.get("YOSYS"):
        yield None
        return
    program = write_program(tmp_path_factory.mktemp("tools"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOSYS", str(program))
        yield program
