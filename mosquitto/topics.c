#include "topics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "identity.h"

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool mac_parse(const char *text, uint64_t *mac)
{
	uint64_t bits = 0;

	for (int at = 0; at < MAC_LENGTH; at++) {
		if (at % 3 == 2) {
			if (text[at] != ':')
				return false;
			continue;
		}
		int value = hex_digit(text[at]);
		if (value < 0) /* also the end of a shorter text */
			return false;
		bits = bits << 4 | (unsigned)value;
	}
	*mac = bits;
	return text[MAC_LENGTH] == '\0';
}

void mac_format(uint64_t mac, char out[MAC_LENGTH + 1])
{
	for (int at = 0; at < MAC_LENGTH; at++)
		out[at] = at % 3 == 2 ? ':' : "0123456789abcdef"[mac >> (44 - 4 * (at - at / 3)) & 15];
	out[MAC_LENGTH] = '\0';
}

unsigned mac_slot(const char *mac)
{
	uint16_t crc = 0;

	for (; *mac; mac++) {
		crc ^= (uint16_t)((unsigned char)*mac << 8);
		for (int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc % SLOTS;
}

unsigned presence_slot(const char *filter)
{
	char same[32];
	unsigned slot;

	if (sscanf(filter, "fleet/presence/%3u/", &slot) != 1 || slot >= SLOTS)
		return SLOTS;
	snprintf(same, sizeof(same), "fleet/presence/%u/+", slot);
	return strcmp(filter, same) == 0 ? slot : SLOTS;
}

/* Returns the rest of `text` after `prefix`, or NULL if it begins otherwise. */
static const char *after(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

const char *down_target(const char *topic, uint64_t *mac)
{
	const char *name = after(topic, "fleet/down/");

	return name && mac_parse(name, mac) ? name : NULL;
}

static bool is_lost_topic(const char *topic)
{
	const char *rest = after(topic, "fleet/shard/");
	const char *digits = rest;

	while (rest && isdigit((unsigned char)*rest))
		rest++;
	return rest && rest > digits && rest - digits <= 3 && strcmp(rest, "/lost") == 0;
}

static bool device_allowed(const char *mac, enum act act, const char *topic, bool retain)
{
	char own[64];

	switch (act) {
	case ACT_WRITE:
		snprintf(own, sizeof(own), "fleet/up/%u/%s", mac_slot(mac), mac);
		return !retain && strcmp(topic, own) == 0;
	case ACT_SUBSCRIBE:
		snprintf(own, sizeof(own), "fleet/down/%s", mac);
		return strcmp(topic, own) == 0;
	default:
		/* The plugin's delivery to one client needs no right to read; delivery to a subscriber does. Without
		 * this right, a device that subscribes to its own topic still gets every message exactly once. */
		return false;
	}
}

static bool service_reads(const char *filter)
{
	return after(filter, "fleet/up/") || after(filter, "fleet/presence/") || after(filter, "fleet/shard/") ||
	       after(filter, "$SYS/") || strcmp(filter, BOOT_TOPIC) == 0;
}

bool topic_allowed(const char *client_id, enum act act, const char *topic, bool retain)
{
	uint64_t mac;

	if (mac_parse(client_id, &mac))
		return device_allowed(client_id, act, topic, retain);
	if (!is_service_id(client_id))
		return false;
	if (act == ACT_WRITE)
		return !retain && (down_target(topic, &mac) || is_lost_topic(topic));
	return service_reads(topic);
}
