// Are numbers of classes or rows in range?

extern "C" __global__ void check(
    const void *ids, i64 wide, i64 count, i64 bound, i64 ignored, i64 may_ignore, Faults *faults, i64 code) {
    EACH(i, count) {
        const i64 id = index_at(ids, i, wide);
        if ((id < 0 || id >= bound) && !(may_ignore && id == ignored)) fault(faults, code, i, id);
    }
}
