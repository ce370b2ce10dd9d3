# The training example of Fluid 1.8's guide to asynchronous data reading, unchanged but for ITERABLE = False.
# Run it with: python -m fluidlite examples/mnist_dataloader_noniterable.py
import paddle
import paddle.fluid as fluid
import paddle.dataset.mnist as mnist
import six

ITERABLE = False

def network():
    # Create data holder.
    image = fluid.data(name='image', dtype='float32', shape=[None, 784])
    label = fluid.data(name='label', dtype='int64', shape=[None, 1])

    # Create DataLoader object.
    reader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=64, iterable=ITERABLE)

    # Define model.
    fc = fluid.layers.fc(image, size=10)
    xe = fluid.layers.softmax_with_cross_entropy(fc, label)
    loss = fluid.layers.reduce_mean(xe)
    return loss , reader

# Create main program and startup program for training.
train_prog = fluid.Program()
train_startup = fluid.Program()

# Define training network.
with fluid.program_guard(train_prog, train_startup):
    # fluid.unique_name.guard() to share parameters with test network
    with fluid.unique_name.guard():
        train_loss, train_loader = network()
        adam = fluid.optimizer.Adam(learning_rate=0.01)
        adam.minimize(train_loss)

# Create main program and startup program for testing.
test_prog = fluid.Program()
test_startup = fluid.Program()

# Define testing network.
with fluid.program_guard(test_prog, test_startup):
    # Use fluid.unique_name.guard() to share parameters with train network
    with fluid.unique_name.guard():
        test_loss, test_loader = network()

place = fluid.CUDAPlace(0)
exe = fluid.Executor(place)

# Run startup_program for initialization.
exe.run(train_startup)
exe.run(test_startup)

# Compile programs.
train_prog = fluid.CompiledProgram(train_prog).with_data_parallel(loss_name=train_loss.name)
test_prog = fluid.CompiledProgram(test_prog).with_data_parallel(share_vars_from=train_prog)

# Configure data source of DataLoader.
places = fluid.cuda_places() if ITERABLE else None

train_loader.set_sample_list_generator(
    fluid.io.shuffle(fluid.io.batch(mnist.train(), 512), buf_size=1024), places=places)

test_loader.set_sample_list_generator(fluid.io.batch(mnist.test(), 512), places=places)

def run_non_iterable(program, exe, loss, data_loader):
    data_loader.start()
    try:
        while True:
            loss_value = exe.run(program=program, fetch_list=[loss])
            print('loss is {}'.format(loss_value))
    except fluid.core.EOFException:
        print('End of epoch')
        data_loader.reset()

for epoch_id in six.moves.range(10):
    run_non_iterable(train_prog, exe, train_loss, train_loader)
    run_non_iterable(test_prog, exe, test_loss, test_loader)
