"""Structural rules of the source tree.

* A folder includes only from folders of a lower level: scheduler; host and kernels; runtime;
  bench; tests. Includes within a folder name it: "host/planner.h", never "planner.h".
* Nothing in scheduler/ or host/ names a CUDA runtime function.
* No file of the library prints, exits or aborts.

Usage: check_tree.py ROOT, or check_tree.py --self-test
"""

import pathlib
import re
import sys
import tempfile

LEVELS = {"scheduler": 0, "host": 1, "kernels": 1, "runtime": 2, "bench": 3, "tests": 4}
LIBRARY = ["scheduler", "host", "kernels", "runtime"]
SUFFIXES = {".h", ".hpp", ".cc", ".c", ".cu", ".cuh"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CUDA_FUNCTION = re.compile(r"\bcuda[A-Z]\w*")
FORBIDDEN = re.compile(
    r"\b(?:f?printf|puts|putchar|perror|_?exit|quick_exit|abort|terminate)\s*\("
    r"|\bstd::(?:cout|cerr|clog)\b|\bfmt::print\b"
)


def folder_of_include(path):
    """The project folder an include path leads to, or None for other libraries."""
    first = path.split("/")[0]
    return "runtime" if first == "headrace" else first if first in LEVELS else None


def check_include(folder, quote, path):
    target = folder_of_include(path)
    if target is None:
        if quote == '"' and "/" not in path:
            return f'includes "{path}" without its folder'
        return None
    if target == folder or LEVELS[target] < LEVELS[folder]:
        return None
    return f"{folder}/ includes {path}, which is not below it"


def check_file(folder, text):
    """Yields one message per violation."""
    for quote, path in INCLUDE.findall(text):
        message = check_include(folder, quote, path)
        if message:
            yield message
    code = COMMENT.sub("", text)
    if folder in ("scheduler", "host"):
        for name in CUDA_FUNCTION.findall(code):
            yield f"{folder}/ names {name}"
    if folder in LIBRARY:
        for match in FORBIDDEN.finditer(code):
            yield f"the library prints, exits or aborts: {match.group(0)}"


def check_tree(root):
    """Returns (violations, number of files looked at)."""
    violations = []
    num_files = 0
    for folder in LEVELS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                num_files += 1
                for message in check_file(folder, path.read_text()):
                    violations.append(f"{path.relative_to(root)}: {message}")
    return violations, num_files


def self_test():
    """Every rule catches its violation, and a clean tree passes."""
    clean = {
        "scheduler/a.h": "#include <cuda/atomic>\n#include <cstdio>\n",
        "host/b.cc": '#include "scheduler/a.h"\n#include "host/b.h"\n// cudaMalloc, exit(1)\n',
        "kernels/cpu/c.cc": '#include "scheduler/a.h"\n#include "hwy/foreach_target.h"\n',
        "runtime/d.cc": '#include "headrace/headrace.h"\n#include "host/b.h"\nx = cudaFree(y);\n',
        "tests/e.cc": '#include "runtime/d.h"\nint main() { printf("ok"); exit(0); }\n',
    }
    bad = {
        "scheduler/a.h": '#include "host/b.h"\n',
        "host/b.cc": '#include "kernels/decode_params.h"\n',
        "host/c.cc": '#include "headrace/headrace.h"\n',
        "host/d.cc": "cudaMemcpyAsync(a, b);\n",
        "kernels/e.cc": '#include "host/planner.h"\n',
        "kernels/f.cc": '#include "decode.h"\n',
        "runtime/g.cc": '#include <tests/catch.h>\n',
        "runtime/h.cc": "std::cerr << 1;\n",
        "runtime/i.cc": "exit(1);\n",
        "bench/j.cc": '#include "tests/catch.h"\n',
    }
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for path, text in clean.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        assert check_tree(root) == ([], len(clean)), check_tree(root)
    for path, text in bad.items():
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(text)
            violations, _ = check_tree(root)
            assert len(violations) == 1 and violations[0].startswith(path), (path, violations)


def main():
    if sys.argv[1] == "--self-test":
        self_test()
        return 0
    violations, num_files = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(violations) or f"{num_files} files, no violation")
    return 1 if violations or num_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
