/* The lowest valid generation of credentials: of single devices, and of all devices without an entry. */
#ifndef FLEET_MINIMA_H
#define FLEET_MINIMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct minima {
	struct minimum {
		uint64_t mac;
		uint32_t generation;
	} *entries; /* after minima_sort: in ascending order of MACs, each MAC once */
	size_t count;
	uint32_t all; /* of devices without an entry; 0: every generation is valid */
};

/* Adds an entry. Returns false if there is no memory. */
bool minima_add(struct minima *minima, uint64_t mac, uint32_t generation);

/* Adds the entries and the minimum of another one. Returns false if there is no memory. */
bool minima_join(struct minima *minima, const struct minima *other);

/* Call it after the last minima_add and before minima_of. Of several entries of a MAC, the highest one is kept. */
void minima_sort(struct minima *minima);

/* Returns the lowest valid generation of a device. */
uint32_t minima_of(const struct minima *minima, uint64_t mac);

void minima_free(struct minima *minima);

#endif
