/* The devices that may not connect although their password is right. */
#ifndef FLEET_REVOKED_H
#define FLEET_REVOKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REVOKED_MOST 1000000

struct revoked {
	uint64_t *macs; /* rising */
	size_t count;
};

/* Reads lines that begin with a MAC; what follows after white space is a note. Empty lines, and lines that begin with
 * `#`, say nothing. Small letters or large, colons or dashes.
 *
 * A line that holds no MAC must neither hide the lines after it nor let anybody in, so then the file only adds to the
 * list, and *wrong is the number of the first such line (otherwise 0). Returns false, and leaves the list as it was,
 * when there are more than REVOKED_MOST MACs, the file cannot be read on, or there is no memory. */
bool revoked_parse(struct revoked *revoked, FILE *file, size_t *wrong);

bool revoked_holds(const struct revoked *revoked, uint64_t mac);
void revoked_free(struct revoked *revoked);

#endif
