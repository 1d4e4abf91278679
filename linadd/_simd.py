"""A vector of 16 float32 lanes for compiled loops, where LLVM's own vectoriser gives up.

`load`, `store`, `splat` and `multiply_add` are all there is; LLVM lowers them to AVX-512, AVX2, SSE or NEON. Offsets
count float32 values from the start of a C-contiguous array and are not checked. With the JIT off the same names are
NumPy functions on arrays of 16 values.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

from linadd._jit import JIT_DISABLED

N_LANES = 16
ALIGNMENT = 64  # bytes of one vector: a load that crosses a cache line costs two


def padded(n):
    """The least multiple of 16 that is not below n."""
    return -(-n // N_LANES) * N_LANES


def aligned_zeros(shape):
    """Zeros, C-contiguous float32, that start on a cache line."""
    n_bytes = int(np.prod(shape)) * 4
    memory = np.zeros(n_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + n_bytes].view(np.float32).reshape(shape)


def load(array, offset):
    """The 16 values from `offset` of a C-contiguous float32 array (any number of dimensions)."""
    return array.reshape(-1)[offset : offset + N_LANES].copy()


def store(array, offset, vector):
    """Write the 16 values to `offset` of a C-contiguous float32 array."""
    array.reshape(-1)[offset : offset + N_LANES] = vector


def splat(scalar):
    """A vector of 16 equal values."""
    return np.full(N_LANES, scalar, np.float32)


def multiply_add(a, b, c):
    """a * b + c in each lane, rounded once where the machine can."""
    return a * b + c


if not JIT_DISABLED:
    LLVM_VECTOR = ir.VectorType(ir.FloatType(), N_LANES)

    class Float32x16(types.Type):
        """Numba's name for the vector."""

        def __init__(self):
            super().__init__(name="Float32x16")

    VECTOR = Float32x16()

    @register_model(Float32x16)
    class Float32x16Model(models.PrimitiveModel):
        """The vector is a plain LLVM value."""

        def __init__(self, manager, fe_type):
            super().__init__(manager, fe_type, LLVM_VECTOR)

    def pointer(context, builder, array_type, array, offset):
        """Address of the vector at an offset of an array."""
        data = context.make_array(array_type)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [offset]), LLVM_VECTOR.as_pointer())

    @intrinsic
    def load(typing, array, offset):
        """The 16 values from `offset` of an array."""

        def codegen(context, builder, signature, args):
            return builder.load(pointer(context, builder, signature.args[0], *args), align=4)

        return VECTOR(array, types.intp), codegen

    @intrinsic
    def store(typing, array, offset, vector):
        """Write the 16 values to `offset` of an array."""

        def codegen(context, builder, signature, args):
            builder.store(args[2], pointer(context, builder, signature.args[0], *args[:2]), align=4)
            return context.get_dummy_value()

        return types.void(array, types.intp, VECTOR), codegen

    @intrinsic
    def splat(typing, scalar):
        """A vector of 16 equal values."""

        def codegen(context, builder, signature, args):
            undefined = ir.Constant(LLVM_VECTOR, ir.Undefined)
            first = builder.insert_element(undefined, args[0], ir.Constant(ir.IntType(32), 0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), [0] * N_LANES)
            return builder.shuffle_vector(first, undefined, mask)

        return VECTOR(types.float32), codegen

    @intrinsic
    def multiply_add(typing, a, b, c):
        """a * b + c in each lane."""

        def codegen(context, builder, signature, args):
            product = builder.fmul(args[0], args[1], flags=("contract",))
            return builder.fadd(product, args[2], flags=("contract",))

        return VECTOR(VECTOR, VECTOR, VECTOR), codegen
