/* The list of devices that may not connect although their password is right: revoked ones, and those with a generation
 * below a minimum. */
#ifndef FLEET_REVOKED_H
#define FLEET_REVOKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "minima.h"

#define REVOKED_MOST 1000000

struct revoked {
	uint64_t *macs; /* in ascending order */
	size_t count;
	struct minima minima;
};

/* Reads lines `MAC`: the device is revoked; `>=N MAC`: generations below N of the device are invalid; `>=N *`: the same
 * for all devices without such a line. The rest of a line after white space is a note. Empty lines and lines that begin
 * with `#` are ignored. A MAC may have capitals or dashes; N is a generation of 1 or more, as in user names.
 *
 * An invalid line must neither hide the lines after it nor admit a device. So if there is one, the file only adds to
 * the list, and *wrong is the number of the first such line (otherwise 0). Returns false, and does not change the list,
 * if there are more than REVOKED_MOST revoked devices or as many minima, the file cannot be read to its end, or there is
 * no memory. */
bool revoked_parse(struct revoked *revoked, FILE *file, size_t *wrong);

bool revoked_holds(const struct revoked *revoked, uint64_t mac);
void revoked_free(struct revoked *revoked);

#endif
