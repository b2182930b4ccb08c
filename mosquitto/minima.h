/* The lowest generation of credentials that counts: of a device, and of all that have no entry. */
#ifndef FLEET_MINIMA_H
#define FLEET_MINIMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct minima {
	struct minimum {
		uint64_t mac;
		uint32_t generation;
	} *entries; /* rising by MAC once sorted, each MAC once */
	size_t count;
	uint32_t all; /* 0: every generation counts */
};

/* Adds an entry. Returns false when there is no memory. */
bool minima_add(struct minima *minima, uint64_t mac, uint32_t generation);

/* Adds all that another one has. Returns false when there is no memory. */
bool minima_join(struct minima *minima, const struct minima *other);

/* Must come after the last entry was added and before the first question; of several entries the highest counts. */
void minima_sort(struct minima *minima);

/* The lowest generation that counts for a device. */
uint32_t minima_of(const struct minima *minima, uint64_t mac);

void minima_free(struct minima *minima);

#endif
