#include "clients.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 64
#define SECOND INT64_C(1000000)
#define BURST_SECONDS 10

/* MACs of one vendor differ in few bits; the multiplication by 2^64 / golden ratio spreads them. */
static size_t home(const struct clients *clients, uint64_t mac)
{
	return (size_t)(mac * UINT64_C(0x9E3779B97F4A7C15) >> 24) & (clients->size - 1);
}

/* Returns the place of a MAC, or the free one where it belongs. At least one place is always free. */
static size_t place(const struct clients *clients, uint64_t mac)
{
	size_t at = home(clients, mac);

	while (clients->places[at].connection && clients->places[at].mac != mac)
		at = (at + 1) & (clients->size - 1);
	return at;
}

static bool resize(struct clients *clients, size_t size)
{
	struct clients bigger = {.places = calloc(size, sizeof(struct client)), .size = size};

	if (!bigger.places)
		return false;
	for (size_t at = 0; at < clients->size; at++)
		if (clients->places[at].connection)
			bigger.places[place(&bigger, clients->places[at].mac)] = clients->places[at];
	free(clients->places);
	bigger.count = clients->count;
	bigger.ending = clients->ending;
	*clients = bigger;
	return true;
}

bool clients_put(struct clients *clients, uint64_t mac, const void *connection, int64_t epoch, const char *user)
{
	if (clients->count * 4 >= clients->size * 3 && !resize(clients, clients->size ? clients->size * 2 : SIZE_FIRST))
		return false;
	char *copy = strdup(user);
	if (!copy)
		return false;
	struct client *entry = &clients->places[place(clients, mac)];
	/* A device that takes over its own connection keeps its limit; otherwise reconnecting would reset it. */
	int64_t due = entry->connection ? entry->due : 0;
	clients->count += entry->connection == NULL;
	clients->ending -= entry->ending;
	free(entry->user);
	*entry = (struct client){.mac = mac, .connection = connection, .epoch = epoch, .due = due, .user = copy};
	return true;
}

const struct client *clients_find(const struct clients *clients, uint64_t mac)
{
	if (clients->size == 0)
		return NULL;
	const struct client *entry = &clients->places[place(clients, mac)];
	return entry->connection ? entry : NULL;
}

bool clients_may_send(struct clients *clients, uint64_t mac, size_t bytes, unsigned a_second, int64_t now)
{
	if (a_second == 0 || !clients_find(clients, mac))
		return true;
	struct client *entry = &clients->places[place(clients, mac)];
	int64_t cost = (1 + (int64_t)(bytes / BYTES_A_MESSAGE)) * SECOND / a_second;
	int64_t due = (entry->due > now ? entry->due : now) + cost;
	if (due - now > BURST_SECONDS * SECOND)
		return false;
	entry->due = due;
	return true;
}

void clients_mark(struct clients *clients, struct client *client)
{
	clients->ending += !client->ending;
	client->ending = true;
}

size_t clients_take_marked(struct clients *clients, uint64_t *macs, size_t most)
{
	size_t found = 0;

	for (size_t at = 0; found < most && clients->ending > 0 && at < clients->size; at++) {
		if (!clients->places[at].ending)
			continue;
		macs[found++] = clients->places[at].mac;
		clients->places[at].ending = false;
		clients->ending--;
	}
	return found;
}

void clients_drop(struct clients *clients, uint64_t mac)
{
	if (!clients_find(clients, mac))
		return;
	size_t mask = clients->size - 1;
	size_t hole = place(clients, mac);
	clients->ending -= clients->places[hole].ending;
	free(clients->places[hole].user);
	/* Close the hole: move back each later entry of the run, unless its home lies behind the hole. */
	for (size_t at = (hole + 1) & mask; clients->places[at].connection; at = (at + 1) & mask) {
		size_t from_home = (at - home(clients, clients->places[at].mac)) & mask;
		if (from_home >= ((at - hole) & mask)) {
			clients->places[hole] = clients->places[at];
			hole = at;
		}
	}
	clients->places[hole] = (struct client){0};
	clients->count--;
}

void clients_free(struct clients *clients)
{
	for (size_t at = 0; at < clients->size; at++)
		free(clients->places[at].user);
	free(clients->places);
	*clients = (struct clients){0};
}
