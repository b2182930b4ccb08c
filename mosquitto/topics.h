/* The topic plan: which topic belongs to which device, and who may do what with it. Mirrors fleet/wire/topics.py. */
#ifndef FLEET_TOPICS_H
#define FLEET_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#define MAC_LENGTH 17
#define SLOTS 256
#define SHARD_ID "fleet-shard-" /* begins the client id of a shard's session */
#define BOOT_TOPIC "fleet/broker/boot"

enum act { ACT_READ, ACT_WRITE, ACT_SUBSCRIBE };

/* Whether `text` is a canonical MAC (lower case, colons). Sets *mac to its 48 bits. */
bool mac_parse(const char *text, uint64_t *mac);

/* Writes the canonical MAC of 48 bits. */
void mac_format(uint64_t mac, char out[MAC_LENGTH + 1]);

/* Slot 0..255 of a canonical MAC: CRC-16/XMODEM of its text modulo 256. */
unsigned mac_slot(const char *mac);

/* The slot of the filter `fleet/presence/<slot>/+`; SLOTS for any other filter. */
unsigned presence_slot(const char *filter);

/* Whether `topic` is `fleet/down/<canonical mac>`. Returns its MAC inside `topic`, or NULL. */
const char *down_target(const char *topic, uint64_t *mac);

/* Whether the client may do this. The client id is enough: BASIC_AUTH gives a MAC to devices only and `fleet-...` to
 * services only. It also serves sessions that have an id but no user name, those read back from the disk. */
bool topic_allowed(const char *client_id, enum act act, const char *topic, bool retain);

#endif
