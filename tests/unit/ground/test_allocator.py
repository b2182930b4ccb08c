"""What malloc keeps, and what it returns to the system."""

import subprocess
import sys

KEEPS_AND_RETURNS = """
import ctypes
from fleet.ground import allocator

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 // 2**20

allocator.tune()
before = resident()
blocks = [libc.malloc(2**16) for _ in range(1024)]
top = libc.malloc(2**16)
for block in blocks:
    ctypes.memset(block, 1, 2**16)
    libc.free(block)
assert resident() >= before + 48, "nothing was left to return"
allocator.return_freed_memory()
assert resident() <= before + 16, "it was not returned"
"""


def test_memory_freed_below_a_block_in_use_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", KEEPS_AND_RETURNS], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
