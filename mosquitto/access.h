/* Decides who may connect: by the keys, the revoked devices and the lowest valid generations, from two files that may
 * change at any time. */
#ifndef FLEET_ACCESS_H
#define FLEET_ACCESS_H

#include <stdbool.h>

#include "clients.h"
#include "identity.h"
#include "revoked.h"
#include "watched_file.h"

#define REVOKED_NAME "revoked"

struct access {
	struct watched_file keys_file;
	struct watched_file revoked_file;
	struct keys keys;
	struct revoked revoked;
};

/* Reads both files; revoked_path NULL means the file `revoked` beside the keys, which need not exist. Returns false, and
 * logs the reason, if there are no keys or the list cannot be read. */
bool access_open(struct access *access, const char *keys_path, const char *revoked_path);
void access_close(struct access *access);

/* Whether a client with these credentials may connect; each of them may be NULL. */
bool access_admits(const struct access *access, const char *client_id, const char *username, const char *password);

/* Reads both files again. If a file is invalid, its fault is logged and its old content stays valid. Ends no connection,
 * because after SIGHUP the broker calls on_auth again for all of them. */
void access_reload(struct access *access);

/* Reads the files that have changed; call it about once a second. With `clients`, it also ends the connections of
 * services whose key was retired, and marks those of devices whose credentials have become invalid. Pass NULL while the
 * broker processes a packet: a connection must not be ended then. */
void access_poll(struct access *access, struct clients *clients);

/* Ends some of the marked connections; call it in every tick, but not while the broker processes a packet. Not all at
 * once, because each end causes messages, and the queues of their receivers are bounded. */
void access_end_marked(struct clients *clients);

#endif
