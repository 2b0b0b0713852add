"""What results depend on: the GPU, its driver and clocks, and the software."""

import pathlib
import platform
import subprocess

import torch

CLOCKS = ('clocks.sm', 'clocks.mem', 'temperature.gpu', 'power.draw', 'clocks_event_reasons.active')


def _smi(fields):
    """{field: text} of nvidia-smi; {} where it does not run."""
    try:
        line = subprocess.run(['nvidia-smi', '--id=0', '--format=csv,noheader,nounits',
                               '--query-gpu=' + ','.join(fields)],
                              capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (value.strip() for value in line.split(','))))


def clocks():
    """Clocks in MHz, degrees Celsius, watts, and why the clocks are not higher, as text, now."""
    return _smi(CLOCKS)


def describe():
    properties = torch.cuda.get_device_properties(0)
    return {'device': properties.name, 'sms': properties.multi_processor_count,
            'l2_bytes': properties.L2_cache_size, 'memory_bytes': properties.total_memory,
            **_smi(('driver_version', 'clocks.max.sm', 'clocks.max.mem')),
            'cuda': torch.version.cuda, 'torch': torch.__version__,
            'python': platform.python_version(), 'system': platform.platform()}


def commit():
    """Of this checkout; 'unknown' outside of one."""
    try:
        return subprocess.run(['git', 'describe', '--always', '--dirty'], capture_output=True,
                              text=True, check=True,
                              cwd=pathlib.Path(__file__).parent).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return 'unknown'
