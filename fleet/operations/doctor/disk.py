"""Check the disk below a folder: is there space, and may this user write?"""

import os
from pathlib import Path

from fleet.core.finding import Finding, ok, problem, warning

_MB = 1_000_000
_FULL, _LOW = 20 * _MB, 500 * _MB
"""Bytes: fleet's own files are small; a Redis that keeps its data needs more."""


def judge_disk(check: str, folder: Path, whose: str) -> Finding:
    """Return a finding about the disk of a folder.

    Args:
        check: The id of the finding.
        folder: The folder.
        whose: Who writes into it.
    """
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return warning(
            check, f"{whose} has no folder {folder}: {error.strerror}", "Make it; see the log of its program"
        )
    free = disk.f_bavail * disk.f_frsize
    advice = f"Free space on the disk of {folder} (df -h {folder}), or use another folder"
    if disk.f_files and not disk.f_favail:
        return problem(check, f"{whose} cannot make files in {folder}: no inode is free", f"{advice}; see df -i")
    message = f"{free / _MB:.0f} MB are free for {whose} in {folder}"
    if free < _FULL:
        return problem(check, f"the disk is full: {message}", advice)
    return warning(check, f"the disk is nearly full: {message}", advice) if free < _LOW else ok(check, message)
