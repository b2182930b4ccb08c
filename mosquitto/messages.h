/* The messages of the plugin itself. The broker queues them and sends them in the next iteration of its loop. */
#ifndef FLEET_MESSAGES_H
#define FLEET_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_TOPIC "$SYS/broker/fleet/"

/* Sends to one client, also without a subscription, or with client_id NULL to all subscribers. Returns false if there is
 * no memory. */
bool message_send(const char *client_id, const char *topic, const void *payload, size_t length, int qos);

/* Publishes the epoch of the broker's start. */
void message_boot(const char *client_id, int64_t epoch);

/* Publishes to one client, or with client_id NULL to all subscribers, that a device connected or disconnected. `address`
 * and `user`, the user name that was verified, may be NULL. `expired`: the keep-alive of the device ran out. */
void message_presence(const char *client_id, const char *mac, bool online, int64_t epoch, const char *address,
		      const char *user, bool expired);

/* Publishes one counter below COUNTS_TOPIC. */
void message_count(const char *name, uint64_t value);

#endif
