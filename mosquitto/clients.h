/* The devices that are connected now: MAC -> connection and epoch. Grows and shrinks with the connections only. */
#ifndef FLEET_CLIENTS_H
#define FLEET_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client {
	uint64_t mac;
	const void *connection; /* never followed, only compared; NULL marks a free place */
	int64_t epoch;
	int64_t due; /* when it may again send a whole burst, in microseconds */
	char *user;  /* with which it connected */
	bool ending; /* its credentials count no longer */
};

struct clients {
	struct client *places; /* open addressing, linear probing */
	size_t size;           /* a power of two, or 0 */
	size_t count;
	size_t ending; /* how many are */
};

/* Remembers the connection, epoch and user name of a MAC in place of an older one. Returns false when there is no
 * memory. */
bool clients_put(struct clients *clients, uint64_t mac, const void *connection, int64_t epoch, const char *user);

/* Returns the entry of a MAC, or NULL. Valid until the next put or drop. */
const struct client *clients_find(const struct clients *clients, uint64_t mac);

/* How much a device may send: `a_second` messages for long and ten times as many at once; 0 is without a limit. A message
 * counts once for each BYTES_A_MESSAGE that it has begun. */
#define BYTES_A_MESSAGE 4096

/* Counts a message of a connected device. Returns false when it is one too many; then it was not counted.
 * `now` in microseconds, never going back. */
bool clients_may_send(struct clients *clients, uint64_t mac, size_t bytes, unsigned a_second, int64_t now);

/* Marks a connection that is to be ended; `client` is one of the places. */
void clients_mark(struct clients *clients, struct client *client);

/* Writes the MACs of at most `most` marked ones, takes their marks away, and returns how many. */
size_t clients_take_marked(struct clients *clients, uint64_t *macs, size_t most);

void clients_drop(struct clients *clients, uint64_t mac);
void clients_free(struct clients *clients);

#endif
