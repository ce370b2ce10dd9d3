"""Steps of eager_fluid.py in the 2.0 API, for fluidlite and Paddle 3. usage: eager_paddle2.py SECONDS NETWORK..."""

import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from timing import blocks, result


def stepper(net, loss_function, x, y):
    adam = paddle.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
    x, y = paddle.to_tensor(x), paddle.to_tensor(y)

    def step():
        loss = loss_function(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss.numpy()

    return step


seconds = float(sys.argv[1])
random = np.random.RandomState(0)
layers = []
for layer in range(5):
    layers += [paddle.nn.Linear(8, 8), *([paddle.nn.ReLU()] if layer < 4 else [])]
inputs = random.rand(4, 8).astype("float32"), random.rand(4, 8).astype("float32")
images, labels = random.rand(512, 784).astype("float32"), random.randint(0, 10, (512, 1)).astype("int64")
steps = {
    "five 8x8, batch 4": lambda: stepper(paddle.nn.Sequential(*layers), F.mse_loss, *inputs),
    "softmax regression": lambda: stepper(paddle.nn.Linear(784, 10), F.cross_entropy, images, labels),
}
result({name + " (2.0)": blocks(steps[name](), seconds) for name in sys.argv[2:] if name in steps})
