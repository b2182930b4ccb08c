/* The topic plan: the topics of a device, and the rights of clients. The same plan as fleet/wire/topics.py. */
#ifndef FLEET_TOPICS_H
#define FLEET_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#define MAC_LENGTH 17
#define SLOTS 256
#define SHARD_ID "fleet-shard-" /* prefix of the client id of a shard's session */
#define BOOT_TOPIC "fleet/broker/boot"

enum act { ACT_READ, ACT_WRITE, ACT_SUBSCRIBE };

/* Whether `text` is a canonical MAC (lower case, colons). Sets *mac to its 48 bits. */
bool mac_parse(const char *text, uint64_t *mac);

/* Writes 48 bits as a canonical MAC. */
void mac_format(uint64_t mac, char out[MAC_LENGTH + 1]);

/* Slot 0..255 of a canonical MAC: CRC-16/XMODEM of its text modulo 256. */
unsigned mac_slot(const char *mac);

/* The slot of the filter `fleet/presence/<slot>/+`; SLOTS for any other filter. */
unsigned presence_slot(const char *filter);

/* Whether `topic` is `fleet/down/<canonical mac>`. Returns its MAC inside `topic`, or NULL. */
const char *down_target(const char *topic, uint64_t *mac);

/* Whether the client may do this. The client id is enough to decide: on_auth admits a MAC only for devices and
 * `fleet-...` only for services. So it also works for sessions without a user name, which the broker read from disk. */
bool topic_allowed(const char *client_id, enum act act, const char *topic, bool retain);

#endif
