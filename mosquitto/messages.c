#include "messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker_codes.h"
#include "topics.h"

/* The payload is a copy in the broker's own memory. mosquitto_broker_publish takes it over, but only if it succeeds.
 * The function that publishes a copy is not used: it corrupts the memory accounting of Mosquitto 2.0. */
bool message_send(const char *client_id, const char *topic, const void *payload, size_t length, int qos)
{
	void *copy = length ? mosquitto_malloc(length) : NULL;

	if (length && !copy)
		return false;
	if (length)
		memcpy(copy, payload, length);
	if (mosquitto_broker_publish(client_id, topic, (int)length, copy, qos, false, NULL) == BROKER_SUCCESS)
		return true;
	mosquitto_free(copy);
	return false;
}

void message_boot(const char *client_id, int64_t epoch)
{
	char json[64];
	int length = snprintf(json, sizeof(json), "{\"epoch\":%" PRId64 "}", epoch);

	message_send(client_id, BOOT_TOPIC, json, (size_t)length, 1);
}

void message_presence(const char *client_id, const char *mac, bool online, int64_t epoch, const char *address,
		      const char *user, bool expired)
{
	char topic[64];
	char json[256];
	bool plain = address && strlen(address) < 64 && strspn(address, "0123456789abcdefABCDEF.:") == strlen(address);
	int length = snprintf(json, sizeof(json), "{\"online\":%s,\"epoch\":%" PRId64 "%s%s%s%s%s%s%s}",
			      online ? "true" : "false", epoch, plain ? ",\"ip\":\"" : "", plain ? address : "",
			      plain ? "\"" : "", user ? ",\"user\":\"" : "", user ? user : "", user ? "\"" : "",
			      expired ? ",\"expired\":true" : "");

	snprintf(topic, sizeof(topic), "fleet/presence/%u/%s", mac_slot(mac), mac);
	if (!message_send(client_id, topic, json, (size_t)length, 1))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: no memory to publish the presence of %s", mac);
}

void message_count(const char *name, uint64_t value)
{
	char topic[64];
	char digits[24];

	snprintf(topic, sizeof(topic), COUNTS_TOPIC "%s", name);
	message_send(NULL, topic, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value), 0);
}
