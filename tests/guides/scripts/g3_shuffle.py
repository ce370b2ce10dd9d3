import paddle.fluid as fluid

def reader():
    for i in range(5):
        yield i
shuffled_reader = fluid.io.shuffle(reader, 3)
for e in shuffled_reader():
    print(e)
