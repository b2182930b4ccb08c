"""Becomes another program that the kernel ends together with its parent.

Run as a script, `bound.py PARENT PROGRAM ARGUMENT…`: between fork and exec of a process with threads nothing but exec
is safe, so the wish is made here, and survives the second exec. Only Linux has it; elsewhere the program just starts.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise SystemExit("the parent is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
