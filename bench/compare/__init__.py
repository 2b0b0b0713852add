"""headrace beside other paged decode attention kernels: one process, the same data, CUDA graphs.

`python3 -m compare --help`, with bench/ on the module path; README.md says how to start anew.
"""
