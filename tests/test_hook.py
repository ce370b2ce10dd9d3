"""The import hook: `paddle...` is this package, by aliases of its modules; errors for missing names."""

import subprocess
import sys

import pytest

import fluidlite
from fluidlite.base import missing
from fluidlite.base.errors import NotSupportedError
from fluidlite.base.names.fluid_modules import ALIASES, fluid_name, real_name

HOOKED = ("-W", "error", "-c")


def check(python, code):
    """Run code in a process of its own in which the hook is installed."""
    done = python(*HOOKED, "import fluidlite.as_paddle\n" + code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_names_are_the_same_modules(python):
    code = """
import sys
import paddle
import paddle.fluid as fluid
import paddle.dataset.mnist as mnist
import paddle.fluid.layers.nn as nn
from paddle.fluid.io import DataLoader
from paddle.fluid.param_attr import ParamAttr
from paddle.fluid.layers import tensor
import fluidlite, fluidlite.dataset.mnist, fluidlite.io
from fluidlite.base.names.fluid_modules import canonical

assert fluid is fluidlite is paddle.fluid is sys.modules['paddle.fluid']
assert mnist is fluidlite.dataset.mnist
assert nn is fluid.layers.nn and tensor is fluid.layers.tensor
assert nn.fc is fluid.layers.fc and tensor.concat is fluid.layers.concat is nn.concat
assert DataLoader is fluidlite.io.DataLoader
assert fluid.unique_name is __import__('paddle.fluid.unique_name', fromlist=['x'])
for name, module in list(sys.modules.items()):
    if name.startswith('fluidlite'):
        assert module.__spec__ is None or module.__spec__.name == canonical(name), (name, module.__spec__)
print(paddle.__version__, fluid.__name__)
"""
    assert check(python, code) == "1.8.5 fluidlite\n"


def test_functions_called_like_modules_stay(python):
    code = """
import paddle
import paddle.fluid as fluid
import paddle.fluid.data
import paddle.batch
from paddle.fluid.data import data
from paddle.fluid.layers.rnn import LSTMCell, rnn

assert fluid.data is data and fluid.layers.rnn is rnn and callable(rnn) and callable(paddle.batch)
fluid.data = None
assert fluid.data is None
"""
    check(python, code)


def test_attributes_without_importing_the_module(python):
    code = "from paddle import fluid, batch, reader\nfor f in fluid.layers.fc, batch, reader.shuffle: print(f.__name__)"
    assert check(python, code) == "fc\nbatch\nshuffle\n"


def test_it_hides_an_installed_paddle_and_only_then(python, tmp_path):
    (tmp_path / "paddle.py").write_text("WHO = 'the real one'")
    assert python(*HOOKED, "import fluidlite, paddle; print(paddle.WHO)").stdout == "the real one\n"
    assert check(python, "import paddle; print(paddle.__version__)") == "1.8.5\n"
    done = python(*HOOKED, "import paddle, fluidlite.as_paddle")
    assert "ImportError: another paddle has been imported already" in done.stderr
    assert str(tmp_path / "paddle.py") in done.stderr


def test_installing_twice_does_nothing(python):
    code = """
import sys
from fluidlite.paddle import hook
before = list(sys.meta_path)
hook.install()
assert sys.meta_path == before
"""
    check(python, code)


@pytest.mark.parametrize(
    "statement, error, message",
    [
        (
            "import paddle.fluid as fluid; fluid.contrib.utils.convert_dist_to_sparse_program(1)",
            "NotSupportedError",
            "fluid.contrib.convert_dist_to_sparse_program of Fluid 1.8 will not be in fluidlite",
        ),
        ("import paddle.nothing", "ModuleNotFoundError", "neither Fluid 1.8 nor fluidlite has it"),
        (
            "from paddle.fluid.contrib.utils import convert_dist_to_sparse_program; convert_dist_to_sparse_program(1)",
            "NotSupportedError",
            "fluid.contrib.convert_dist_to_sparse_program of Fluid 1.8 will not be in fluidlite",
        ),
        ("from paddle.fluid import nothing", "ImportError", "module 'fluid' has no attribute 'nothing'"),
        ("import paddle.amp", "ModuleNotFoundError", "leave auto_cast and GradScaler away"),
    ],
)
def test_what_is_missing_says_so(python, statement, error, message):
    done = python(*HOOKED, "import fluidlite.as_paddle\n" + statement)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert error in last.partition(" ")[0] and message in last


def test_missing_attributes():
    with pytest.raises(
        NotSupportedError,
        match=r"fluid\.contrib\.convert_dist_to_sparse_program of Fluid 1\.8 will not be in fluidlite: Fluid 1.8's",
    ):
        fluidlite.contrib.utils.convert_dist_to_sparse_program(1)
    with pytest.raises(NotSupportedError, match="PSLib, whose servers"):
        fluidlite.layers.nn._pull_sparse(1)
    with pytest.raises(
        NotSupportedError, match=r"_has_backward_op exists in Fluid 1\.8 but not in fluidlite"
    ):
        fluidlite.compiler._has_backward_op(1)
    with pytest.raises(AttributeError, match="did you mean 'fc'"):
        fluidlite.layers.fcc  # noqa: B018
    with pytest.raises(AttributeError, match="'fluid' has no attribute 'qwertz'$"):
        fluidlite.qwertz  # noqa: B018
    assert hasattr(fluidlite.contrib.utils, "convert_dist_to_sparse_program")
    assert not hasattr(fluidlite, "__path_hooks__")


def test_what_is_only_imported_does_not_stop_a_script(python):
    code = """
import paddle.fluid.contrib.slim.nas.search_agent as agents
import paddle.fluid.transpiler.ps_dispatcher as dispatcher
from paddle.fluid.transpiler import *
from paddle.fluid.contrib.utils import convert_dist_to_sparse_program
from paddle.fluid.incubate.fleet.parameter_server.pslib import DownpourOptimizer
from paddle.fluid.dataset import BoxPSDataset
import paddle.fluid as fluid
import abc, functools

assert fluid.contrib.slim.nas.search_agent is agents and fluid.transpiler.ps_dispatcher is dispatcher
later = fluid.contrib.utils.lookup_table_utils.convert_dist_to_sparse_program
assert fluid.contrib.utils.convert_dist_to_sparse_program is convert_dist_to_sparse_program is later
assert fluid.transpiler.DistributeTranspiler is fluid.DistributeTranspiler

class Util(DownpourOptimizer):
    size = 3
    def __init__(self):
        super().__init__()

class Mixed(fluid.dataset.FileInstantDataset, fluid.contrib.convert_dist_to_sparse_program, abc.ABC):
    pass

later = functools.partial(convert_dist_to_sparse_program, 1)
assert Util.size == 3 and issubclass(Util, DownpourOptimizer) and not isinstance(3, DownpourOptimizer)
other = lambda: Util.other
for use in (later, Util, Mixed, other, lambda: list(BoxPSDataset)):
    try:
        use()
    except NotImplementedError as error:
        print(str(error).split()[0])
"""
    assert check(python, code).split() == [
        "fluid.contrib.convert_dist_to_sparse_program",
        "fluid.incubate.fleet.parameter_server.pslib.DownpourOptimizer",
        "fluid.dataset.FileInstantDataset",
        "fluid.incubate.fleet.parameter_server.pslib.DownpourOptimizer",
        "fluid.dataset.BoxPSDataset",
    ]


def test_a_name_of_fluid_is_found_in_its_module_here(python):
    code = """
import paddle.fluid as fluid
from paddle.fluid.layers.loss import cross_entropy, LayerHelper
from paddle.fluid.layers.nn import ParamAttr, default_main_program, Normal
from paddle.fluid.dataloader.batch_sampler import BatchSampler
from paddle.fluid.dygraph.dygraph_to_static.program_translator import ProgramTranslator
assert cross_entropy is fluid.layers.cross_entropy and fluid.layers.loss.mse_loss is fluid.layers.mse_loss
assert ParamAttr is fluid.ParamAttr and default_main_program is fluid.default_main_program
assert BatchSampler is fluid.io.BatchSampler and ProgramTranslator is fluid.dygraph.ProgramTranslator
assert fluid.layers.nn.utils is not fluid.layers and fluid.optimizer.framework is fluid.framework
"""
    check(python, code)


@pytest.mark.parametrize(
    "name, real",
    [
        ("paddle", "fluidlite.paddle"),
        ("paddle.fluid", "fluidlite"),
        ("paddle.fluid.io", "fluidlite.fluid.io"),
        ("paddle.fluid.layers.nn", "fluidlite.fluid.layers.nn"),
        ("paddle.fluid.layers.rnn", "fluidlite.fluid.layers"),
        ("paddle.fluid.unique_name", "fluidlite.fluid.unique_name"),
        ("paddle.fluid.framework", "fluidlite.framework"),
        ("paddle.dataset.mnist", "fluidlite.dataset.mnist"),
        ("paddle.reader.creator", "fluidlite.paddle.reader.creator"),
    ],
)
def test_real_names(name, real):
    assert real_name(name) == real


def test_fluid_names():
    assert fluid_name("fluidlite") == "fluid"
    assert fluid_name("fluidlite.fluid.layers") == fluid_name("fluidlite.layers") == "fluid.layers"
    assert fluid_name("fluidlite.paddle.reader") == "paddle.reader"
    assert fluid_name("fluidlite.dataset.mnist") == "paddle.dataset.mnist"
    for name, real in ALIASES.items():
        assert missing.in_fluid(name), f"{name}, which stands for {real}, is not a module of Fluid"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("how", ["script", "program"])
def test_processes_of_a_script_find_paddle(python, tmp_path, method, how):
    text = f"""
import {"paddle" if how == "script" else "fluidlite.as_paddle"}
import multiprocessing
import worker

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    with context.Pool(1) as pool:
        print(pool.apply(worker.work, (20,)))
    pool.join()
"""
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "worker.py").write_text(
        "import paddle.fluid as fluid\n"
        "def work(n):\n    return n + 1, fluid.__name__, fluid.unique_name.generate('fc')\n"
    )
    done = python(*(["-m", "fluidlite"] if how == "script" else []), "script.py")
    assert (done.stdout, done.returncode) == ("(21, 'fluidlite', 'fc_0')\n", 0), done.stderr


def test_children_get_the_device(python, tmp_path):
    (tmp_path / "script.py").write_text(
        "import multiprocessing, fluidlite.base.flags as flags\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(flags.device))\n"
    )
    assert python("-m", "fluidlite", "--device", "gpu", "script.py").stdout == "gpu\n"


def test_import_is_quick():
    """`import fluidlite` brings in nothing slow that only some programs need."""
    code = "import sys, fluidlite; print(*sys.modules)"
    root = fluidlite.__path__[0] + "/.."
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    loaded = set(done.stdout.split())
    assert "fluidlite.fluid.layers" in loaded and "fluidlite.layers" not in loaded
    for slow in (
        "scipy.special",
        "scipy.stats",
        "google.protobuf",
        "urllib.request",
        "asyncio",
        "tqdm",
        "cupy",
    ):
        assert slow not in loaded
