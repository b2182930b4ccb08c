/* A file that others replace while the broker runs. A look at it costs one stat. */
#ifndef FLEET_WATCHED_FILE_H
#define FLEET_WATCHED_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct watched_file {
	char *path;
	struct stat seen;  /* all 0 when there was no file */
	unsigned unstill; /* looks that found another change, since it was last read */
};

/* Takes a copy of the path. Returns false when there is no memory. */
bool watched_open(struct watched_file *file, const char *path);
void watched_close(struct watched_file *file);

/* Looks at the file because it is about to be read. */
void watched_look(struct watched_file *file);

/* Looks at the file, as is done about once a second, and returns whether it must be read: it was changed, replaced,
 * removed or made, and has been still since the last look (its writer may be in the middle), or has not been still for
 * three looks. */
bool watched_due(struct watched_file *file);

/* Whether the last look found a file, or something that it could not look at. */
bool watched_exists(const struct watched_file *file);

/* Opens a regular file of up to 64 MiB: a pipe would stop the broker. Returns NULL with errno. */
FILE *regular_file_open(const char *path);

#endif
