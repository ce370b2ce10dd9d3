"""A convolutional network on handwritten digits, on a GPU if there is one; shows what a step is made of.

usage: python -m fluidlite examples/gpu_lenet.py [EPOCHS] [STEPS_PER_EPOCH]
"""

import itertools
import sys

import paddle
import paddle.fluid as fluid


def network():
    """Build the network; returns (inputs, loss, accuracy)."""
    image = fluid.data(name="image", shape=[None, 784], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.reshape(image, [-1, 1, 28, 28])
    for filters in (20, 50):
        hidden = fluid.nets.simple_img_conv_pool(
            hidden, num_filters=filters, filter_size=5, pool_size=2, pool_stride=2, act="relu"
        )
    scores = fluid.layers.fc(hidden, size=10)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, label))
    return [image, label], loss, fluid.layers.accuracy(fluid.layers.softmax(scores), label)


def main(epochs, steps):
    """Train for `epochs` epochs of at most `steps` steps; None stands for all of them."""
    place = fluid.CUDAPlace(0) if fluid.is_compiled_with_cuda() else fluid.CPUPlace()
    print(f"running on {place!r}")
    inputs, loss, accuracy = network()
    fluid.optimizer.Adam(learning_rate=0.001).minimize(loss)
    # With a GPU as its place, the loader sends two batches ahead while a step computes.
    loader = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=8)
    loader.set_sample_list_generator(
        paddle.batch(paddle.reader.shuffle(paddle.dataset.mnist.train(), 10000), 100), places=place
    )
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    for epoch in range(epochs):
        for step, feed in enumerate(itertools.islice(loader(), steps)):
            if step % 20:
                exe.run(feed=feed)  # nothing is fetched: nobody waits for the GPU
            else:
                value, right = exe.run(feed=feed, fetch_list=[loss, accuracy])
                print(f"epoch {epoch}, step {step}: loss {value.item():.4f}, accuracy {right.item():.3f}")
    print("what a step is made of:")
    print("\n".join(exe.describe().split("\n")[:8]))
    print(loader.summary())


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    main(numbers[0] if numbers else 1, numbers[1] if len(numbers) > 1 else None)
