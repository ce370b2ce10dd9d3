"""Fluid's random streams: seed for seed the numbers that Fluid 1.8 draws on the CPU.

Every function begins a new stream at its seed, as every random operator of Fluid does, so equal seeds give equal
numbers. A seed of 0 is an ordinary one here; callers to whom it means "any" pass a fresh number.
"""
import numpy as np
cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.random cimport mt19937_64

cnp.import_array()


cdef extern from "rng/draw.h" namespace "fl" nogil:
    void draw_uniform(uint64_t seed, float low, float high, int64_t n, float *out)
    void draw_normal(uint64_t seed, float mean, float std, int64_t n, float *out)
    void draw_uniform64 "fl::draw_uniform"(uint64_t seed, double low, double high, int64_t n, double *out)
    void draw_normal64 "fl::draw_normal"(uint64_t seed, double mean, double std, int64_t n, double *out)
    void draw_truncated_normal(uint64_t seed, float mean, float std, int64_t n, float *out)
    void draw_integers(uint64_t seed, int64_t low, int64_t high, int64_t n, int64_t *out)
    void draw_dropout_mask(uint64_t seed, float prob, int64_t n, uint8_t *out)


cdef object empty(int64_t n, int type_num):
    cdef cnp.npy_intp length = n
    if n < 0:
        raise ValueError(f"the number of values must not be negative, got {n}")
    return cnp.PyArray_EMPTY(1, &length, type_num, 0)


def uniform(uint64_t seed, double low, double high, int64_t n, bint double_precision=False):
    """`n` numbers uniform on [low, high), as `uniform_random` draws them (bit for bit).

    They are float32, or with `double_precision` float64, whose stream is another one.
    """
    out = empty(n, cnp.NPY_FLOAT64 if double_precision else cnp.NPY_FLOAT32)
    cdef void *data = cnp.PyArray_DATA(<cnp.ndarray> out)
    with nogil:
        if double_precision:
            draw_uniform64(seed, low, high, n, <double *> data)
        else:
            draw_uniform(seed, <float> low, <float> high, n, <float *> data)
    return out


def normal(uint64_t seed, double mean, double std, int64_t n, bint double_precision=False):
    """`n` normal numbers, as `gaussian_random` draws them (to an ulp of the logarithm).

    They are float32, or with `double_precision` float64, whose stream is another one.
    """
    out = empty(n, cnp.NPY_FLOAT64 if double_precision else cnp.NPY_FLOAT32)
    cdef void *data = cnp.PyArray_DATA(<cnp.ndarray> out)
    with nogil:
        if double_precision:
            draw_normal64(seed, mean, std, n, <double *> data)
        else:
            draw_normal(seed, <float> mean, <float> std, n, <float *> data)
    return out


def truncated_normal(uint64_t seed, float mean, float std, int64_t n):
    """`n` normal float32 numbers within two sigma of the mean, as `truncated_gaussian_random` draws them (bit for bit)."""
    out = empty(n, cnp.NPY_FLOAT32)
    cdef float *data = <float *> cnp.PyArray_DATA(<cnp.ndarray> out)
    with nogil:
        draw_truncated_normal(seed, mean, std, n, data)
    return out


def randint(uint64_t seed, int64_t low, int64_t high, int64_t n):
    """`n` int64 numbers uniform on [low, high), as `randint` draws them.

    Raises:
        ValueError: the range is empty.
    """
    if low >= high:
        raise ValueError(f"randint draws from [low, high), which is empty for low {low} and high {high}")
    out = empty(n, cnp.NPY_INT64)
    cdef int64_t *data = <int64_t *> cnp.PyArray_DATA(<cnp.ndarray> out)
    with nogil:
        draw_integers(seed, low, high, n, data)
    return out


def dropout_mask(uint64_t seed, float prob, int64_t n):
    """`n` uint8 flags: 1 where `dropout` with this seed keeps an element, 0 (probability `prob`) where not."""
    out = empty(n, cnp.NPY_UINT8)
    cdef uint8_t *data = <uint8_t *> cnp.PyArray_DATA(<cnp.ndarray> out)
    with nogil:
        draw_dropout_mask(seed, prob, n, data)
    return out


def sampler_bits(uint64_t seed, int64_t n):
    """`n` uint64 numbers of the generator (MT19937-64) from which samplers of classes draw in Fluid."""
    out = empty(n, cnp.NPY_UINT64)
    cdef uint64_t *data = <uint64_t *> cnp.PyArray_DATA(<cnp.ndarray> out)
    cdef mt19937_64 engine = mt19937_64(seed)
    cdef int64_t k
    with nogil:
        for k in range(n):
            data[k] = engine()
    return out
