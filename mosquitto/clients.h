/* The connected devices: a hash table from MAC to connection and epoch. Only connections make it grow. */
#ifndef FLEET_CLIENTS_H
#define FLEET_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client {
	uint64_t mac;
	const void *connection; /* only compared, never dereferenced; NULL marks a free place */
	int64_t epoch;
	int64_t due; /* time from which it may send a whole burst, in microseconds */
	char *user;  /* the user name of the connection */
	bool ending; /* marked: its credentials are not valid any more */
};

struct clients {
	struct client *places; /* open addressing, linear probing */
	size_t size;           /* a power of two, or 0 */
	size_t count;
	size_t ending; /* number of marked places */
};

/* Stores the connection, epoch and user name of a MAC, and replaces older ones. Returns false if there is no memory. */
bool clients_put(struct clients *clients, uint64_t mac, const void *connection, int64_t epoch, const char *user);

/* Returns the entry of a MAC, or NULL. It is valid until the next clients_put or clients_drop. */
const struct client *clients_find(const struct clients *clients, uint64_t mac);

/* The limit of a device: `a_second` messages on average and ten times as many at once; 0 is no limit. A message counts
 * once, and once more for each BYTES_A_MESSAGE. */
#define BYTES_A_MESSAGE 4096

/* Counts a message of a connected device. Returns false if it exceeds the limit; it is not counted then.
 * `now` is a monotonic time in microseconds. */
bool clients_may_send(struct clients *clients, uint64_t mac, size_t bytes, unsigned a_second, int64_t now);

/* Marks a connection that must be ended; `client` is one of the places. */
void clients_mark(struct clients *clients, struct client *client);

/* Writes the MACs of at most `most` marked connections, removes their marks, and returns their number. */
size_t clients_take_marked(struct clients *clients, uint64_t *macs, size_t most);

void clients_drop(struct clients *clients, uint64_t mac);
void clients_free(struct clients *clients);

#endif
