"""Executes another program with PR_SET_PDEATHSIG: the kernel ends it together with its parent.

A script: `pdeathsig_exec.py PARENT PROGRAM ARGUMENT…`. The signal is set here and not between fork and exec, where a
process with threads can do nothing safely but exec; the setting survives the second exec. On systems other than Linux
the program starts without it.
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
        raise SystemExit("the parent has ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
