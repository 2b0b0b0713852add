"""A row made ready to run: tensors, tables and lengths that all systems share.

A KV set is what one layer of a model holds: its own pages in K and V, under the page table of the
step. Calls take the sets in turn, so that none finds its pages in the L2 cache.
"""

import torch

TORCH_DTYPES = {'bf16': torch.bfloat16, 'fp8': torch.float8_e4m3fn}
COLD_CACHES = 4  # L2 caches read between two calls on the same set
MAX_SETS = 1024
# Of a set this many times as large, the cache keeps less than one per cent; it needs no others.
COLD_ALONE = 32
FILL_ELEMENTS = 1 << 26


def cold_bytes():
    """What has to be read between two reads of the same memory."""
    return COLD_CACHES * torch.cuda.get_device_properties(0).L2_cache_size


def num_sets(set_bytes, cold_bytes):
    """How many sets it takes to read cold_bytes of others between two calls on one."""
    if set_bytes >= COLD_ALONE * cold_bytes:
        return 1
    return min(1 + -(-cold_bytes // set_bytes), MAX_SETS)


class Pools:
    """K and V memory that all rows use in turn: random values of deviation 1 of one dtype."""

    def __init__(self, pool_bytes, seed):
        self.k, self.v = (torch.empty(pool_bytes, dtype=torch.uint8, device='cuda')
                          for _ in range(2))
        self.seed = seed
        self._filled = (None, 0)

    def sets(self, row, count, set_pages):
        """Views of K and of V, [count, set_pages, page_size, kv_heads, head_dim], filled."""
        shape = (count, set_pages, row.page_size, row.kv_heads, row.head_dim)
        dtype = TORCH_DTYPES[row.dtype]
        num_bytes = torch.Size(shape).numel() * dtype.itemsize
        self._fill(num_bytes, dtype)
        return tuple(pool[:num_bytes].view(dtype).view(shape) for pool in (self.k, self.v))

    def _fill(self, num_bytes, dtype):
        filled_dtype, filled_bytes = self._filled
        if dtype == filled_dtype and num_bytes <= filled_bytes:
            return
        for number, pool in enumerate((self.k, self.v)):
            random = torch.Generator('cuda').manual_seed(self.seed + number)
            for part in pool[:num_bytes].view(dtype).split(FILL_ELEMENTS):
                part.copy_(torch.randn(part.shape, dtype=torch.bfloat16, device='cuda',
                                       generator=random))
        self._filled = (dtype, num_bytes)


class Problem:
    """Tensors of a row on the GPU; those whose name begins with host are in host memory.

    k_sets, v_sets  [num_sets, set_pages, page_size, kv_heads, head_dim], bf16 or fp8 e4m3
    q               [batch, qo_heads, head_dim], bf16
    block_table     [batch, most pages of a request], int32; 0 past a request's end
    seq_lens        [batch], int32, tokens; also host_seq_lens, and seq_lens_list as a list
    kv_indptr, last_page_len  [batch + 1] and [batch], int32, host memory: the table's rows in one
    kv_indices      [set_pages], int32
    k_scale, v_scale  [kv_heads], float32, or None: element times scale is the value
    """

    def __init__(self, row, pools, seed):
        self.row = row
        self.seq_lens_list = row.seq_lens(seed)
        self.sm_scale = row.head_dim**-0.5
        self.cache_dtype = TORCH_DTYPES[row.dtype]
        self.set_pages = row.set_pages(seed)
        self.num_sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.kv_bytes = row.kv_bytes(seed)
        self.num_sets = num_sets(row.set_bytes(seed), cold_bytes())
        self.k_sets, self.v_sets = pools.sets(row, self.num_sets, self.set_pages)
        self._make_tables(seed + 2)
        random = torch.Generator('cuda').manual_seed(seed + 3)
        self.k_scale = self.v_scale = None
        if row.head_scales:
            self.k_scale, self.v_scale = 0.5 + torch.rand(
                2, row.kv_heads, device='cuda', generator=random)
        self.q = torch.randn(row.batch, row.qo_heads, row.head_dim, dtype=torch.bfloat16,
                             device='cuda', generator=random)

    def _make_tables(self, seed):
        """The requests' pages, in random order."""
        self.host_seq_lens = torch.tensor(self.seq_lens_list, dtype=torch.int32)
        page_size = self.row.page_size
        num_pages = (self.host_seq_lens + page_size - 1) // page_size
        self.num_pages_list = num_pages.tolist()
        self.last_page_len = self.host_seq_lens - (num_pages - 1) * page_size
        self.kv_indptr = torch.zeros(self.row.batch + 1, dtype=torch.int32)
        self.kv_indptr[1:] = num_pages.cumsum(0)
        indices = torch.randperm(self.set_pages, dtype=torch.int32,
                                 generator=torch.Generator().manual_seed(seed))
        table = torch.zeros(self.row.batch, max(self.num_pages_list), dtype=torch.int32)
        for request, pages in enumerate(indices.split(self.num_pages_list)):
            table[request, :len(pages)] = pages
        self.seq_lens = self.host_seq_lens.to('cuda')
        self.kv_indices = indices.to('cuda')
        self.block_table = table.to('cuda')
