/* What the plugin publishes itself: through the broker's queue, at the next turn of its loop. */
#ifndef FLEET_MESSAGES_H
#define FLEET_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_TOPIC "$SYS/broker/fleet/"

/* To one client, subscribed or not, or with client_id NULL to all subscribers. Returns false when there is no memory. */
bool message_send(const char *client_id, const char *topic, const void *payload, size_t length, int qos);

/* Tells the epoch of the broker's start. */
void message_boot(const char *client_id, int64_t epoch);

/* Tells one client, or with client_id NULL all subscribers, that a device came, with its address and the user name that
 * was proved, or went; both may be NULL. `expired` when nothing was heard of it any more. */
void message_presence(const char *client_id, const char *mac, bool online, int64_t epoch, const char *address,
		      const char *user, bool expired);

/* Tells one figure to whoever watches the broker. */
void message_count(const char *name, uint64_t value);

#endif
