import paddle.fluid as fluid
def reader_creator_10(dur):
    def reader():
       for i in range(10):
           yield i
    return reader
reader = fluid.io.compose(reader_creator_10(0), reader_creator_10(0))
