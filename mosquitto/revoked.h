/* Who may not connect although the password is right: revoked devices, and generations below a minimum. */
#ifndef FLEET_REVOKED_H
#define FLEET_REVOKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "minima.h"

#define REVOKED_MOST 1000000

struct revoked {
	uint64_t *macs; /* rising */
	size_t count;
	struct minima minima;
};

/* Reads lines `MAC`: that device is revoked; `>=N MAC`: of that device only generation N and higher count; `>=N *`: so
 * for all devices that have no such line. What follows after white space is a note. Empty lines, and lines that begin
 * with `#`, say nothing. Small letters or large, colons or dashes; N is a generation of 1 or more, as in user names.
 *
 * A line that is none of these must neither hide the lines after it nor let anybody in, so then the file only adds to
 * the list, and *wrong is the number of the first such line (otherwise 0). Returns false, and leaves the list as it was,
 * when there are more than REVOKED_MOST revoked devices or as many minima, the file cannot be read on, or there is no
 * memory. */
bool revoked_parse(struct revoked *revoked, FILE *file, size_t *wrong);

bool revoked_holds(const struct revoked *revoked, uint64_t mac);
void revoked_free(struct revoked *revoked);

#endif
