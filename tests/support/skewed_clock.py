"""Another clock for a program of this machine: a library that is loaded before the C library's."""

import functools
import subprocess
import tempfile
from pathlib import Path

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void) { const char *text = getenv("SKEW_SECONDS"); return text ? atol(text) : 0; }

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
	int result = real(now, zone);
	if (now) now->tv_sec += skew();
	return result;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int result = real(clock, now);
	if (clock == CLOCK_REALTIME) now->tv_sec += skew();
	return result;
}

time_t time(time_t *now)
{
	time_t (*real)(time_t *) = dlsym(RTLD_NEXT, "time");
	time_t result = real(NULL) + skew();
	if (now) *now = result;
	return result;
}
"""


@functools.cache
def _build() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="skew-"))
    source, library = folder / "skew.c", folder / "skew.so"
    source.write_text(_SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True, timeout=240)
    return library


def skewed(seconds: int) -> dict[str, str]:
    """Return the environment variables with which a program's clock is so many seconds ahead."""
    return {"LD_PRELOAD": str(_build()), "SKEW_SECONDS": str(seconds)}
