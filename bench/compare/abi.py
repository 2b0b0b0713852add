"""headrace.h through ctypes: raw pointers in, errors out as exceptions with the library's message.

Pointers are addresses: `tensor.data_ptr()` of torch, `array.ctypes.data` of numpy. They must be
memory of the context's device, and stay alive; see headrace.h for shapes, units and errors.
"""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p

# Of the header that this file mirrors; before 1.0 every minor version may change the structures.
VERSION = (0, 1)

DEVICES = {'auto': 0, 'cpu': 1, 'cuda': 2}
DTYPES = {'bf16': 0, 'fp16': 1, 'f32': 2, 'fp8': 3}
LAYOUTS = {'nhd': 0, 'hnd': 1}


class HeadraceError(RuntimeError):
    """A call that failed; `status` is its headrace_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Struct(ctypes.Structure):
    """A structure of the C ABI, zero but for struct_size and the fields given."""

    def __init__(self, **fields):
        unknown = set(fields) - {name for name, *_ in self._fields_}
        if unknown:
            raise TypeError(f'{type(self).__name__} has no field {", ".join(sorted(unknown))}')
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class ContextOptions(_Struct):
    _fields_ = [('struct_size', c_size_t), ('device', c_int), ('num_workers', c_int32)]


class ContextInfo(_Struct):
    _fields_ = [('struct_size', c_size_t), ('device', c_int), ('num_workers', c_int32),
                ('description', c_char_p)]


class AttentionDesc(_Struct):
    _fields_ = ([('struct_size', c_size_t)] +
                [(name, c_int32)
                 for name in ('num_qo_heads', 'num_kv_heads', 'head_dim', 'page_size')] +
                [(name, c_int) for name in ('q_dtype', 'kv_dtype', 'out_dtype', 'layout')] +
                [('sm_scale', c_float)] +
                [(name, c_int64)
                 for name in ('k_page_stride', 'k_token_stride', 'k_head_stride',
                              'v_page_stride', 'v_token_stride', 'v_head_stride',
                              'q_request_stride', 'q_head_stride',
                              'out_request_stride', 'out_head_stride',
                              'lse_request_stride', 'lse_head_stride')])


class PlanOptions(_Struct):
    _fields_ = [('struct_size', c_size_t), ('max_requests', c_int32), ('max_seq_len', c_int32),
                ('invariant', c_int32), ('check_plans', c_int32)]


class PlanSizes(_Struct):
    _fields_ = [('struct_size', c_size_t), ('plan_bytes', c_size_t), ('workspace_bytes', c_size_t),
                ('alignment', c_size_t), ('max_items', c_size_t)]


class RunArgs(_Struct):
    _fields_ = [('struct_size', c_size_t), ('num_requests', c_int32), ('validate', c_int32),
                ('q', c_void_p), ('k_cache', c_void_p), ('v_cache', c_void_p),
                ('num_pages', c_int64), ('block_table', c_void_p), ('block_table_stride', c_int64),
                ('seq_lens', c_void_p), ('k_scale', c_void_p), ('v_scale', c_void_p),
                ('out', c_void_p), ('lse', c_void_p), ('workspace', c_void_p),
                ('workspace_bytes', c_size_t), ('stream', c_void_p), ('dependent_launch', c_int32),
                ('fresh_tokens', c_int32), ('timeline', c_void_p)]


_HANDLE = c_void_p
_FUNCTIONS = {  # name: arguments; all but those of _OTHER_RESULTS return a status
    'headrace_context_create': [POINTER(ContextOptions), POINTER(_HANDLE)],
    'headrace_context_destroy': [_HANDLE],
    'headrace_context_get_info': [_HANDLE, POINTER(ContextInfo)],
    'headrace_plan_get_sizes': [_HANDLE, POINTER(AttentionDesc), POINTER(PlanOptions),
                                POINTER(PlanSizes)],
    'headrace_plan_create': [_HANDLE, POINTER(AttentionDesc), POINTER(PlanOptions), c_void_p,
                             c_size_t, POINTER(_HANDLE)],
    'headrace_plan_destroy': [_HANDLE],
    'headrace_plan_update': [_HANDLE, c_void_p, c_int32, c_void_p],
    'headrace_run': [_HANDLE, POINTER(RunArgs)],
    'headrace_last_error': [],
    'headrace_version': [],
}
_OTHER_RESULTS = {'headrace_context_destroy': None, 'headrace_plan_destroy': None,
                  'headrace_last_error': c_char_p, 'headrace_version': c_char_p}


class Library:
    """libheadrace.so, loaded. Raises OSError if it cannot be, RuntimeError for another version."""

    def __init__(self, path):
        self._dll = ctypes.CDLL(str(path))
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._dll, name)
            function.argtypes = arguments
            function.restype = _OTHER_RESULTS.get(name, c_int)
        self.version = self._dll.headrace_version().decode()
        if tuple(map(int, self.version.split('.')[:2])) != VERSION:
            raise RuntimeError(f"'{path}': needs headrace {'.'.join(map(str, VERSION))}, given "
                               f'{self.version}')

    def call(self, name, *arguments):
        """Calls headrace_`name`. Raises HeadraceError unless it returns HEADRACE_OK."""
        status = getattr(self._dll, 'headrace_' + name)(*arguments)
        if status:
            raise HeadraceError(status, self._dll.headrace_last_error().decode())


class Context:
    """A device ('auto', 'cpu' or 'cuda') and its workers; 0: as many as the device has."""

    def __init__(self, library, device='auto', num_workers=0):
        self.library = library
        self._handle = _HANDLE()
        library.call('context_create', byref(ContextOptions(device=DEVICES[device],
                                                            num_workers=num_workers)),
                     byref(self._handle))

    @property
    def description(self):
        info = ContextInfo()
        self.library.call('context_get_info', self._handle, byref(info))
        return info.description.decode()

    def plan_sizes(self, desc, options):
        sizes = PlanSizes()
        self.library.call('plan_get_sizes', self._handle, byref(desc), byref(options), byref(sizes))
        return sizes

    def plan(self, desc, options, buffer, buffer_bytes):
        """A Plan on `buffer`, the address of plan_sizes().plan_bytes bytes that outlive it."""
        handle = _HANDLE()
        self.library.call('plan_create', self._handle, byref(desc), byref(options), buffer,
                          buffer_bytes, byref(handle))
        return Plan(self, handle)

    def __del__(self):
        if getattr(self, '_handle', None):
            self.library._dll.headrace_context_destroy(self._handle)


class Plan:
    """Made by Context.plan(); covers no requests until update()."""

    def __init__(self, context, handle):
        self._context = context  # destroyed after its plans
        self._call = context.library.call
        self._handle = handle

    def update(self, seq_lens, num_requests, stream=None):
        """`seq_lens`: address of int32 [num_requests] in host memory, tokens."""
        self._call('plan_update', self._handle, seq_lens, num_requests, stream)

    def run(self, args):
        """`args`: RunArgs."""
        self._call('run', self._handle, byref(args))

    def __del__(self):
        if getattr(self, '_handle', None):
            self._context.library._dll.headrace_plan_destroy(self._handle)
