"""The shared library exports exactly the functions that headrace.h declares.

Usage: check_exports.py NM LIBRARY HEADER
"""

import re
import subprocess
import sys


def main():
    nm, library, header = sys.argv[1:]
    listing = subprocess.run(
        [nm, "--dynamic", "--defined-only", "--extern-only", "--format=posix", library],
        check=True, capture_output=True, text=True,
    ).stdout
    exported = {line.split()[0].split("@")[0] for line in listing.splitlines()}
    with open(header) as file:
        declared = set(re.findall(r"^HEADRACE_API [^;(]*?(\w+)\(", file.read(), re.MULTILINE))
    for name in sorted(exported - declared):
        print(f"exported but not declared: {name}")
    for name in sorted(declared - exported):
        print(f"declared but not exported: {name}")
    print(f"{len(exported)} exported, {len(declared)} declared")
    return 0 if declared and exported == declared else 1


if __name__ == "__main__":
    sys.exit(main())
