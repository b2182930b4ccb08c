/* Who may connect now: the keys, the revoked devices and the generations that count, from two files that may change at any time. */
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

/* Reads both files; revoked_path NULL means the file `revoked` beside the keys. That one need not exist. Returns false,
 * with the reason in the broker's log, when there are no keys or the list cannot be read. */
bool access_open(struct access *access, const char *keys_path, const char *revoked_path);
void access_close(struct access *access);

/* Whether these credentials let this client in; any of them may be NULL. */
bool access_admits(const struct access *access, const char *client_id, const char *username, const char *password);

/* Reads both files again. What is wrong with one goes to the log, and what was valid before stays valid. Ends no
 * connection: the broker asks for all of them again after SIGHUP. */
void access_reload(struct access *access);

/* Reads the files that have changed, about once a second. With `clients`, also ends the connections of services whose
 * key was retired, and marks those of devices whose credentials count no longer; that must not be done while the broker
 * works on a packet. */
void access_poll(struct access *access, struct clients *clients);

/* Ends some of the marked connections, at every tick: each end makes messages, and their queues are bounded. Not while
 * the broker works on a packet. */
void access_end_marked(struct clients *clients);

#endif
