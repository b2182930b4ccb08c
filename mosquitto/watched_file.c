#include "watched_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_UNSTILL 3
#define LARGEST (64 << 20)

bool watched_open(struct watched_file *file, const char *path)
{
	*file = (struct watched_file){.path = strdup(path)};
	return file->path != NULL;
}

void watched_close(struct watched_file *file)
{
	free(file->path);
	*file = (struct watched_file){0};
}

static bool same_time(const struct timespec *one, const struct timespec *two)
{
	return one->tv_sec == two->tv_sec && one->tv_nsec == two->tv_nsec;
}

/* st_ctim is compared too, because chmod, rename and touch can leave st_mtim unchanged. */
static bool same_file(const struct stat *one, const struct stat *two)
{
	return one->st_dev == two->st_dev && one->st_ino == two->st_ino && one->st_size == two->st_size &&
	       one->st_mode == two->st_mode && same_time(&one->st_mtim, &two->st_mtim) &&
	       same_time(&one->st_ctim, &two->st_ctim);
}

void watched_look(struct watched_file *file)
{
	if (stat(file->path, &file->seen) != 0) {
		int reason = errno;
		memset(&file->seen, 0, sizeof(file->seen));
		file->seen.st_mode = reason == ENOENT || reason == ENOTDIR ? 0 : S_IFREG;
	}
	file->unstill = 0;
}

bool watched_due(struct watched_file *file)
{
	struct stat before = file->seen;
	unsigned unstill = file->unstill;

	watched_look(file);
	if (same_file(&before, &file->seen))
		return unstill > 0;
	file->unstill = (unstill + 1) % MOST_UNSTILL;
	return file->unstill == 0;
}

bool watched_exists(const struct watched_file *file)
{
	return file->seen.st_mode != 0;
}

FILE *regular_file_open(const char *path)
{
	struct stat status;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (descriptor < 0)
		return NULL;
	if (fstat(descriptor, &status) == 0) {
		errno = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
		FILE *file = S_ISREG(status.st_mode) && status.st_size <= LARGEST ? fdopen(descriptor, "r") : NULL;
		if (file)
			return file;
	}
	int reason = errno;
	close(descriptor);
	errno = reason;
	return NULL;
}
