"""headrace's C ABI through compare.abi, on the CPU, against numpy in float64.

Usage: abi_test.py path/to/libheadrace.so
"""

import ctypes
import itertools
import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'bench'))
from compare import abi  # noqa: E402

LIBRARY = sys.argv.pop(1)
LENGTHS = [0, 1, 15, 16, 17, 300, 2000]
NUM_KV_HEADS, NUM_QO_HEADS, HEAD_DIM, PAGE_SIZE = 2, 8, 128, 16
NUM_WORKERS = 3
PAST_END = 2**31 - 1


def bf16_bits(values):
    """float32 to the nearest bf16, as uint16; ties away from zero."""
    return ((values.astype(numpy.float32).view(numpy.uint32) + 0x8000) >> 16).astype(numpy.uint16)


def bf16_values(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)


def _e4m3(byte):
    sign, exponent, mantissa = byte >> 7, byte >> 3 & 15, byte & 7
    if (exponent, mantissa) == (15, 7):
        return numpy.nan
    magnitude = (8 + mantissa) * 2.0**(exponent - 10) if exponent else mantissa * 2.0**-9
    return -magnitude if sign else magnitude


E4M3 = numpy.array([_e4m3(byte) for byte in range(256)])
POSITIVE = E4M3[:127]  # ascending


def e4m3_bits(values):
    """To the nearest e4m3, as uint8."""
    places = numpy.searchsorted((POSITIVE[1:] + POSITIVE[:-1]) / 2, numpy.abs(values))
    return (places + 128 * (values < 0)).astype(numpy.uint8)


FORMATS = {  # to bits, to values, a NaN
    'bf16': (bf16_bits, bf16_values, 0x7FC0),
    'fp8': (e4m3_bits, lambda bits: E4M3[bits], 0x7F),
}


class Problem:
    """A batch with NaN in every cache slot that no valid token has, and NaN in the outputs."""

    def __init__(self, dtype, layout, seed):
        random = numpy.random.default_rng(seed)
        to_bits, to_values, nan = FORMATS[dtype]
        self.num_pages = [-(-length // PAGE_SIZE) for length in LENGTHS]
        pool_pages = sum(self.num_pages) + 3
        ids = random.permutation(pool_pages).astype(numpy.int32)
        self.table = numpy.full((len(LENGTHS), max(self.num_pages) + 1), PAST_END, numpy.int32)
        shape = (pool_pages, PAGE_SIZE, NUM_KV_HEADS, HEAD_DIM)
        bits = [to_bits(random.standard_normal(shape)) for _ in range(2)]
        used = numpy.zeros((pool_pages, PAGE_SIZE), bool)
        first = 0
        for request, (length, pages) in enumerate(zip(LENGTHS, self.num_pages)):
            self.table[request, :pages] = ids[first:first + pages]
            first += pages
            for token in range(length):
                used[self.table[request, token // PAGE_SIZE], token % PAGE_SIZE] = True
        for pool in bits:
            pool[~used] = nan
        self.values = [to_values(pool) for pool in bits]
        axes = (0, 2, 1, 3) if layout == 'hnd' else (0, 1, 2, 3)
        self.k, self.v = (numpy.ascontiguousarray(pool.transpose(axes)) for pool in bits)
        self.q = bf16_bits(random.standard_normal((len(LENGTHS), NUM_QO_HEADS, HEAD_DIM)))
        self.scales = random.uniform(0.5, 1.5, (2, NUM_KV_HEADS)).astype(numpy.float32)
        self.seq_lens = numpy.array(LENGTHS, numpy.int32)
        self.out = numpy.full(self.q.shape, 0x7FC0, numpy.uint16)
        self.lse = numpy.full(self.q.shape[:2], numpy.nan, numpy.float32)
        self.desc = abi.AttentionDesc(
            num_qo_heads=NUM_QO_HEADS, num_kv_heads=NUM_KV_HEADS, head_dim=HEAD_DIM,
            page_size=PAGE_SIZE, q_dtype=abi.DTYPES['bf16'], kv_dtype=abi.DTYPES[dtype],
            out_dtype=abi.DTYPES['bf16'], layout=abi.LAYOUTS[layout], sm_scale=HEAD_DIM**-0.5)
        self.options = abi.PlanOptions(max_requests=len(LENGTHS), max_seq_len=max(LENGTHS))

    def expected(self, request, head):
        """(output, log-sum-exp) in float64."""
        kv_head = head // (NUM_QO_HEADS // NUM_KV_HEADS)
        pages = self.table[request, :self.num_pages[request]]
        k, v = (values[pages, :, kv_head].reshape(-1, HEAD_DIM)[:LENGTHS[request]] * scale[kv_head]
                for values, scale in zip(self.values, self.scales.astype(numpy.float64)))
        scores = k @ bf16_values(self.q[request, head]) * HEAD_DIM**-0.5
        if not len(scores):
            return numpy.zeros(HEAD_DIM), -numpy.inf
        weights = numpy.exp(scores - scores.max())
        return weights @ v / weights.sum(), scores.max() + numpy.log(weights.sum())


def aligned(num_bytes, alignment):
    """(array that owns it, address) of memory that holds 0xFF."""
    memory = numpy.full(num_bytes + alignment, 0xFF, numpy.uint8)
    return memory, memory.ctypes.data + -memory.ctypes.data % alignment


class Abi(unittest.TestCase):
    def setUp(self):
        self.context = abi.Context(abi.Library(LIBRARY), 'cpu', NUM_WORKERS)

    def make_plan(self, problem, missing_bytes=0):
        sizes = self.context.plan_sizes(problem.desc, problem.options)
        self.plan_memory, plan_buffer = aligned(sizes.plan_bytes, sizes.alignment)
        self.workspace_memory, workspace = aligned(sizes.workspace_bytes, sizes.alignment)
        plan = self.context.plan(problem.desc, problem.options, plan_buffer,
                                 sizes.plan_bytes - missing_bytes)
        args = abi.RunArgs(
            num_requests=len(LENGTHS), q=problem.q.ctypes.data, k_cache=problem.k.ctypes.data,
            v_cache=problem.v.ctypes.data, num_pages=len(problem.k),
            block_table=problem.table.ctypes.data, block_table_stride=problem.table.shape[1],
            seq_lens=problem.seq_lens.ctypes.data, k_scale=problem.scales[0].ctypes.data,
            v_scale=problem.scales[1].ctypes.data, out=problem.out.ctypes.data,
            lse=problem.lse.ctypes.data, workspace=workspace,
            workspace_bytes=sizes.workspace_bytes)
        return plan, args

    def test_outputs_and_lse(self):
        for seed, (dtype, layout) in enumerate(itertools.product(FORMATS, abi.LAYOUTS)):
            with self.subTest(dtype=dtype, layout=layout):
                problem = Problem(dtype, layout, seed)
                plan, args = self.make_plan(problem)
                plan.update(problem.seq_lens.ctypes.data, len(LENGTHS))
                plan.run(args)
                places = list(itertools.product(range(len(LENGTHS)), range(NUM_QO_HEADS)))
                expected = numpy.array([problem.expected(*place)[0] for place in places])
                actual = bf16_values(problem.out).reshape(expected.shape)
                error = actual - expected
                self.assertLess(numpy.sqrt((error**2).sum() / (expected**2).sum()), 0.0025)
                self.assertLess(abs(error).max() / abs(expected).max(), 0.005)
                lse = numpy.array([problem.expected(*place)[1] for place in places])
                numpy.testing.assert_allclose(problem.lse.ravel(), lse, rtol=1e-5, atol=1e-5)

    def test_description_and_version(self):
        self.assertIn(f'{NUM_WORKERS} threads', self.context.description)
        self.assertRegex(self.context.library.version, r'^\d+\.\d+\.\d+$')

    def test_errors_have_the_library_s_message(self):
        problem = Problem('bf16', 'nhd', 0)
        with self.assertRaisesRegex(abi.HeadraceError, 'needed.*bytes') as caught:
            self.make_plan(problem, missing_bytes=1)
        self.assertEqual(caught.exception.status, 3)
        problem.desc.head_dim = 72
        with self.assertRaisesRegex(abi.HeadraceError, '72'):
            self.make_plan(problem)

    def test_structures_of_another_size_are_refused(self):
        problem = Problem('bf16', 'nhd', 0)
        plan, args = self.make_plan(problem)
        for struct, call in [
                (problem.desc, lambda: self.context.plan_sizes(problem.desc, problem.options)),
                (problem.options, lambda: self.context.plan_sizes(problem.desc, problem.options)),
                (args, lambda: plan.run(args))]:
            struct.struct_size += 8
            with self.assertRaisesRegex(abi.HeadraceError, 'struct_size'):
                call()
            struct.struct_size = ctypes.sizeof(struct)

    def test_unknown_fields_are_refused(self):
        with self.assertRaisesRegex(TypeError, 'PlanOptions has no field max_request'):
            abi.PlanOptions(max_request=1)

    def test_another_version_is_refused(self):
        known = abi.VERSION
        abi.VERSION = (99, 0)
        try:
            with self.assertRaisesRegex(RuntimeError, 'needs headrace 99.0, given '):
                abi.Library(LIBRARY)
        finally:
            abi.VERSION = known


if __name__ == '__main__':
    unittest.main()
