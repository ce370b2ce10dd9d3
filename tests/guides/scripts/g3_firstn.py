import paddle.fluid as fluid

def reader():
    for i in range(100):
        yield i
firstn_reader = fluid.io.firstn(reader, 5)
for e in firstn_reader():
    print(e)
