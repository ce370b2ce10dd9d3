"""Uses an installed fluidlite as a script of the day would: trains in both modes, saves, loads, reads with a process.

python scripts/smoke.py    # needs nothing but the package; also runs where there is no compiler
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import fluidlite
import fluidlite as fluid
from fluidlite._ext import dnn, engine, kernels
from fluidlite.dataset import mnist


def static_mode(folder):
    """Train the digits that come with the package, save the model, and predict with it as before."""
    image, label = fluid.data("image", [None, 1, 28, 28]), fluid.data("label", [None, 1], "int64")
    hidden = fluid.nets.simple_img_conv_pool(image, 8, 5, 2, 2, act="relu")
    guess = fluid.layers.fc(hidden, 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(guess, label))
    fluid.optimizer.Adam(0.003).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    loader = fluid.io.DataLoader.from_generator([image, label], capacity=4, use_multiprocess=True)
    loader.set_sample_generator(mnist.train(), batch_size=64, places=fluid.CPUPlace())
    losses = []
    for data, _ in zip(loader(), range(40), strict=False):
        losses.append(float(exe.run(feed=data, fetch_list=[loss])[0][0]))
    assert np.mean(losses[-5:]) < losses[0] / 2, losses
    fluid.io.save_inference_model(folder, ["image"], [guess], exe)
    program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    images = np.zeros((3, 1, 28, 28), "float32")
    (found,) = exe.run(program, feed={feeds[0]: images}, fetch_list=fetches)
    assert found.shape == (3, 10) and np.allclose(found.sum(1), 1, atol=1e-5)


def dygraph_mode():
    """Fit a line."""
    with fluid.dygraph.guard():
        layer = fluid.dygraph.Linear(2, 1)
        adam = fluid.optimizer.Adam(0.1, parameter_list=layer.parameters())
        x = np.random.default_rng(0).random((64, 2), np.float32)
        y = x @ np.array([[2.0], [-1.0]], "float32") + 0.5
        for _ in range(300):
            error = fluid.layers.square(layer(fluid.dygraph.to_variable(x)) - fluid.dygraph.to_variable(y))
            loss = fluid.layers.mean(error)
            loss.backward()
            adam.minimize(loss)
            layer.clear_gradients()
        assert float(loss.numpy()[0]) < 1e-3, loss.numpy()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        static_mode(made)
    dygraph_mode()
    where = Path(fluidlite.__file__).parent
    compilers = [name for name in ("gcc", "cc", "g++", "clang") if shutil.which(name)]
    count = len([engine, kernels, dnn])
    print(f"fluidlite {fluidlite.__version__} works on Python {sys.version.split()[0]}, in {where}")
    print(f"{count} extensions were imported; compilers: {', '.join(compilers) or 'none'}")
