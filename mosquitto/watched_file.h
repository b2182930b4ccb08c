/* A file that other programs replace while the broker runs. A check costs one stat. */
#ifndef FLEET_WATCHED_FILE_H
#define FLEET_WATCHED_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

struct watched_file {
	char *path;
	struct stat seen; /* all 0 if there was no file */
	unsigned unstill; /* checks that found a further change, since the file was last read */
};

/* Copies the path. Returns false if there is no memory. */
bool watched_open(struct watched_file *file, const char *path);
void watched_close(struct watched_file *file);

/* Records the state of the file; call it before the file is read. */
void watched_look(struct watched_file *file);

/* Checks the file; call it about once a second. Returns whether the file must be read: it was changed, replaced, removed
 * or created, and then did not change between two checks, as its writer may not have finished before. If it changes all
 * the time, it must be read at the third check. */
bool watched_due(struct watched_file *file);

/* Whether there was a file at the last check, or one that could not be checked. */
bool watched_exists(const struct watched_file *file);

/* Opens a regular file of up to 64 MiB; a pipe would block the broker. Returns NULL and sets errno. */
FILE *regular_file_open(const char *path);

#endif
