#include "minima.h"

#include <stdlib.h>

static int compare_macs(const void *one, const void *two)
{
	const struct minimum *left = one, *right = two;

	return (left->mac > right->mac) - (left->mac < right->mac);
}

/* Orders by MAC, and the entries of a MAC from the highest generation down. */
static int compare(const void *one, const void *two)
{
	const struct minimum *left = one, *right = two;
	int macs = compare_macs(one, two);

	return macs ? macs : (left->generation < right->generation) - (left->generation > right->generation);
}

bool minima_add(struct minima *minima, uint64_t mac, uint32_t generation)
{
	/* The array is full at each power of two; then its size doubles. */
	if ((minima->count & (minima->count - 1)) == 0) {
		size_t room = minima->count ? minima->count * 2 : 1;
		struct minimum *bigger = realloc(minima->entries, room * sizeof(*bigger));
		if (!bigger)
			return false;
		minima->entries = bigger;
	}
	minima->entries[minima->count++] = (struct minimum){.mac = mac, .generation = generation};
	return true;
}

bool minima_join(struct minima *minima, const struct minima *other)
{
	for (size_t at = 0; at < other->count; at++)
		if (!minima_add(minima, other->entries[at].mac, other->entries[at].generation))
			return false;
	if (other->all > minima->all)
		minima->all = other->all;
	return true;
}

void minima_sort(struct minima *minima)
{
	size_t kept = 0;

	if (minima->count == 0)
		return;
	qsort(minima->entries, minima->count, sizeof(*minima->entries), compare);
	for (size_t at = 1; at < minima->count; at++)
		if (minima->entries[at].mac != minima->entries[kept].mac)
			minima->entries[++kept] = minima->entries[at];
	minima->count = kept + 1;
}

uint32_t minima_of(const struct minima *minima, uint64_t mac)
{
	struct minimum wanted = {.mac = mac};
	const struct minimum *found =
		minima->count ? bsearch(&wanted, minima->entries, minima->count, sizeof(wanted), compare_macs) : NULL;

	return found ? found->generation : minima->all;
}

void minima_free(struct minima *minima)
{
	free(minima->entries);
	*minima = (struct minima){0};
}
