import paddle
import paddle.fluid as fluid
import paddle.dataset.mnist as mnist

def network():
    image = fluid.data(name='image', dtype='float32', shape=[None, 784])
    label = fluid.data(name='label', dtype='int64', shape=[None, 1])
    loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=64)

    # Define model.
    fc = fluid.layers.fc(image, size=10)
    xe = fluid.layers.softmax_with_cross_entropy(fc, label)
    loss = fluid.layers.reduce_mean(xe)
    return loss , loader

# Create main program and startup program for training.
train_prog = fluid.Program()
train_startup = fluid.Program()

with fluid.program_guard(train_prog, train_startup):
    # Use fluid.unique_name.guard() to share parameters with test network.
    with fluid.unique_name.guard():
        train_loss, train_loader = network()
        adam = fluid.optimizer.Adam(learning_rate=0.01)
        adam.minimize(train_loss)

# Create main program and startup program for testing.
test_prog = fluid.Program()
test_startup = fluid.Program()
with fluid.program_guard(test_prog, test_startup):
    # Use fluid.unique_name.guard() to share parameters with train network
    with fluid.unique_name.guard():
        test_loss, test_loader = network()
