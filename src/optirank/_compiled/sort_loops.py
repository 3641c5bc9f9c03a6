"""Compiled steps before and after sorting the values of samples.

Sorting plain integers is what libraries do fastest, well ahead of finding the order of values. So
each value becomes an integer key: the value in the upper bits, made to sort as an unsigned integer,
and its place in the sample in the lower ones. Sorted keys then hold the order. Values of 32 bits or
less keep all their bits. Of longer ones the lowest may be lost; those out of order are put right by
insertion.

Samples follow each other in one array; sample i is at ``indptr[i]:indptr[i + 1]``.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit

_SIGN_64 = np.uint64(1 << 63)
_ONE = np.uint64(1)
_MOST_MOVES = 4  # a value, on average, before insertion is given up


@jit
def pack_integers(values, low, lost_bits, place_bits, indptr, keys):
    """Keys of integers, none of them below ``low``; ``lost_bits`` of their differences go."""
    lost = np.uint64(lost_bits)
    shift = np.uint64(place_bits)
    for i in range(indptr.shape[0] - 1):
        begin = indptr[i]
        for p in range(begin, indptr[i + 1]):
            above = np.uint64(values[p]) - np.uint64(low)
            keys[p] = ((above >> lost) << shift) | np.uint64(p - begin)


@jit
def pack_floats_32(bits, place_bits, indptr, keys):
    """Keys of float32 values, given as the int32 they are stored as."""
    shift = np.uint64(place_bits)
    for i in range(indptr.shape[0] - 1):
        begin = indptr[i]
        for p in range(begin, indptr[i + 1]):
            b = np.int64(bits[p])
            if b < 0:  # the sign bit: the larger the magnitude, the lower; -0.0 becomes 0.0
                b = -(b + (1 << 31))
            keys[p] = (np.uint64(b + (1 << 31)) << shift) | np.uint64(p - begin)


@jit
def pack_floats_64(bits, place_bits, indptr, keys):
    """Keys of float64 values, given as the int64 they are stored as, without the lowest bits."""
    places = (_ONE << np.uint64(place_bits)) - _ONE
    for i in range(indptr.shape[0] - 1):
        begin = indptr[i]
        for p in range(begin, indptr[i + 1]):
            b = np.uint64(bits[p])
            if b & _SIGN_64:
                b = _SIGN_64 - (b & ~_SIGN_64)
            else:
                b |= _SIGN_64
            keys[p] = (b & ~places) | np.uint64(p - begin)


@jit
def number_whole_keys(keys, place_bits, indptr, groups, n_groups):
    """Number the distinct values of each sample, from sorted keys that kept all bits."""
    shift = np.uint64(place_bits)
    places = (_ONE << shift) - _ONE
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        groups_here = groups[begin:end]
        k = -1
        previous = np.uint64(0)
        for p in range(begin, end):
            key = np.uint64(keys[p])
            value = key >> shift
            k += p == begin or value != previous
            previous = value
            groups_here[key & places] = k
        n_groups[i] = k + 1


@jit
def number_short_keys(values, keys, place_bits, indptr, groups, n_groups):
    """As ``number_whole_keys``, where keys lost bits; -1 in ``n_groups`` where it gave up."""
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        here = values[begin:end], keys[begin:end], place_bits, groups[begin:end]
        n_groups[i] = _number(*here)
        if n_groups[i] < 0 and _insert(values[begin:end], keys[begin:end], place_bits):
            n_groups[i] = _number(*here)


@jit
def _number(values, keys, place_bits, groups):
    """Number one sample's values; -1 if the keys do not sort them. Only equal keys are in doubt."""
    shift = np.uint64(place_bits)
    places = (_ONE << shift) - _ONE
    k = -1
    previous = np.uint64(0)
    for p in range(len(keys)):
        key = np.uint64(keys[p])
        if p == 0 or (key >> shift) != (previous >> shift):
            k += 1
        else:
            value = values[key & places]
            before = values[previous & places]
            if value < before:
                return -1
            k += value != before
        previous = key
        groups[key & places] = k
    return k + 1


@jit
def _insert(values, keys, place_bits):
    """Sort keys that are nearly sorted by their values; False when they are not."""
    places = (_ONE << np.uint64(place_bits)) - _ONE
    moves = _MOST_MOVES * len(keys)
    for p in range(1, len(keys)):
        key = np.uint64(keys[p])
        value = values[key & places]
        q = p
        while q > 0 and values[np.uint64(keys[q - 1]) & places] > value:
            keys[q] = keys[q - 1]
            q -= 1
        keys[q] = key
        moves -= p - q
        if moves < 0:
            return False
    return True


@jit
def leave_room_for_zero(values, indptr, groups, n_groups, zero_group):
    """Give the zeros, which are not among the values, a group between negative and positive."""
    for i in range(indptr.shape[0] - 1):
        zero = 0
        for p in range(indptr[i], indptr[i + 1]):
            if values[p] < 0:
                zero = max(zero, np.int64(groups[p]) + 1)
            else:
                groups[p] += 1
        zero_group[i] = zero
        n_groups[i] += 1
