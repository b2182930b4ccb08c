/* Mosquitto plugin of fleet: delivers to devices that never subscribe, checks who connects, limits topics and tells
 * presence. One thread of the broker runs all of it, so nothing here may block. */

#include <errno.h>
#include <inttypes.h>
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "broker_codes.h"
#include "clients.h"
#include "identity.h"
#include "topics.h"

#define EXPORTED __attribute__((visibility("default")))
#define REFUSALS_LOGGED 10
#define REFUSALS_SECONDS 10

static struct {
	struct keys keys;
	struct clients clients;
	char *keys_path;
	int64_t epoch;
	int64_t boot_epoch;
	int64_t refusals_since; /* seconds, monotonic */
	unsigned refusals;
	bool told[SLOTS]; /* a shard has subscribed to the presence of this slot since the broker began */
	bool ticking;   /* the broker calls on_tick */
	bool reloading; /* from SIGHUP until the next tick */
} fleet;

/* Microseconds since 1970, and always more than the last: epochs rise through restarts of the broker and from one
 * broker to the next, and stay below 2^53 (exact in Lua and JSON) until the year 2255. */
static int64_t next_epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	int64_t micros = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	fleet.epoch = micros > fleet.epoch ? micros : fleet.epoch + 1;
	return fleet.epoch;
}

/* Anybody can cause refusals without end, so only the first ones of each span are logged, the others counted. */
static void log_refusal(const char *what, const char *client_id, const char *detail)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - fleet.refusals_since >= REFUSALS_SECONDS) {
		if (fleet.refusals > REFUSALS_LOGGED)
			mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %u more refusals were not logged",
					     fleet.refusals - REFUSALS_LOGGED);
		fleet.refusals = 0;
		fleet.refusals_since = now.tv_sec;
	}
	if (fleet.refusals++ < REFUSALS_LOGGED)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: refused %s of client %.64s: %.128s", what,
				     client_id ? client_id : "-", detail ? detail : "-");
}

/* To one client, subscribed or not, or with client_id NULL to all subscribers. The payload is a copy in the broker's
 * own memory: mosquitto_broker_publish takes it over, but only when it succeeds; its sister that copies for the caller
 * corrupts the memory accounts of Mosquitto 2.0. */
static bool publish(const char *client_id, const char *topic, const void *payload, size_t length, int qos)
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

static void publish_boot(const char *client_id)
{
	char json[64];
	int length = snprintf(json, sizeof(json), "{\"epoch\":%" PRId64 "}", fleet.boot_epoch);

	publish(client_id, BOOT_TOPIC, json, (size_t)length, 1);
}

/* To one client, or with client_id NULL to all subscribers. `ip` goes with a device that comes, `expired` with one that
 * goes because nothing was heard of it. */
static void publish_presence(const char *client_id, const char *mac, bool online, int64_t epoch, const char *ip,
			     bool expired)
{
	char topic[64];
	char json[160];
	bool plain = ip && strlen(ip) < 64 && strspn(ip, "0123456789abcdefABCDEF.:") == strlen(ip);
	int length =
		snprintf(json, sizeof(json), "{\"online\":%s,\"epoch\":%" PRId64 "%s%s%s%s}", online ? "true" : "false",
			 epoch, plain ? ",\"ip\":\"" : "", plain ? ip : "", plain ? "\"" : "",
			 expired ? ",\"expired\":true" : "");

	snprintf(topic, sizeof(topic), "fleet/presence/%u/%s", mac_slot(mac), mac);
	if (!publish(client_id, topic, json, (size_t)length, 1))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: no memory to tell the presence of %s", mac);
}

/* Tells the first shard that subscribes to a slot which of its devices came before: the broker that began anew has
 * forgotten the shard's session, and nobody heard of them. Later ones find what they missed in their session. */
static void publish_earlier(const char *client_id, const char *filter)
{
	char mac[MAC_TEXT];
	unsigned slot = presence_slot(filter);

	if (slot >= SLOTS || fleet.told[slot] || strncmp(client_id, SHARD_ID, strlen(SHARD_ID)) != 0)
		return;
	fleet.told[slot] = true;
	for (size_t at = 0; at < fleet.clients.size; at++) {
		const struct client *client = &fleet.clients.places[at];
		if (!client->connection)
			continue;
		mac_write(client->mac, mac);
		if (mac_slot(mac) == slot)
			publish_presence(client_id, mac, true, client->epoch, NULL, false);
	}
}

static int on_auth(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_basic_auth *auth = event_data;
	const char *id = mosquitto_client_id(auth->client);
	uint64_t mac;

	(void)event;
	(void)userdata;
	if (!credentials_valid(&fleet.keys, id, auth->username, auth->password)) {
		log_refusal("the connection", id, auth->username);
		return BROKER_AUTH;
	}
	/* After SIGHUP the broker asks again for every session that it knows, also for those that are offline. Nobody
	 * comes in between; who fails now is disconnected. */
	if (fleet.reloading || !mac_parse(id, &mac))
		return BROKER_SUCCESS;
	int64_t epoch = next_epoch();
	if (!clients_put(&fleet.clients, mac, auth->client, epoch)) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: no memory for client %s", id);
		return BROKER_AUTH;
	}
	/* The broker sends CONNACK before it delivers this, so whoever answers at once reaches the device. */
	publish_presence(NULL, id, true, epoch, mosquitto_client_address(auth->client), false);
	return BROKER_SUCCESS;
}

static int on_disconnect(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_disconnect *end = event_data;
	const char *id = mosquitto_client_id(end->client); /* NULL after a refused CONNECT */
	uint64_t mac;

	(void)event;
	(void)userdata;
	if (!id || !mac_parse(id, &mac))
		return BROKER_SUCCESS;
	const struct client *client = clients_find(&fleet.clients, mac);
	/* When a connection takes over, its AUTH comes before the DISCONNECT of the old one: that is no offline. */
	if (!client || client->connection != end->client)
		return BROKER_SUCCESS;
	/* Mosquitto 2.0 gives no reason (-1), 2.1 does. */
	publish_presence(NULL, id, false, client->epoch, NULL, end->reason == BROKER_KEEPALIVE);
	clients_drop(&fleet.clients, mac);
	return BROKER_SUCCESS;
}

static int on_acl_check(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_acl_check *check = event_data;
	const char *id = mosquitto_client_id(check->client);

	(void)event;
	(void)userdata;
	if (check->access == MOSQ_ACL_UNSUBSCRIBE)
		return BROKER_SUCCESS;
	if (check->access == MOSQ_ACL_READ)
		return topic_allowed(id, ACT_READ, check->topic, false) ? BROKER_SUCCESS : BROKER_ACL_DENIED;
	enum act act = check->access == MOSQ_ACL_SUBSCRIBE ? ACT_SUBSCRIBE : ACT_WRITE;
	if (!topic_allowed(id, act, check->topic, check->retain)) {
		log_refusal(act == ACT_SUBSCRIBE ? "a subscription" : "a message", id, check->topic);
		return BROKER_ACL_DENIED;
	}
	/* Works like a retained message, on a broker that retains none. */
	if (act == ACT_SUBSCRIBE && strcmp(check->topic, BOOT_TOPIC) == 0)
		publish_boot(id);
	else if (act == ACT_SUBSCRIBE)
		publish_earlier(id, check->topic);
	return BROKER_SUCCESS;
}

/* Any result but these two disconnects the publisher. A denial becomes PUBACK 0x87: the device is offline. */
static int on_message(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_message *message = event_data;
	uint64_t mac;
	const char *target = down_target(message->topic, &mac);

	(void)event;
	(void)userdata;
	if (!target)
		return BROKER_SUCCESS;
	if (!clients_find(&fleet.clients, mac))
		return BROKER_ACL_DENIED;
	return publish(target, message->topic, message->payload, message->payloadlen, message->qos) ? BROKER_SUCCESS
												    : BROKER_ACL_DENIED;
}

static bool load_keys(void)
{
	char error[512];
	struct stat status;

	if (!keys_read(&fleet.keys, fleet.keys_path, error, sizeof(error))) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: %s", error);
		return false;
	}
	if (stat(fleet.keys_path, &status) == 0 && status.st_mode & S_IROTH)
		mosquitto_log_printf(LOG_LEVEL_WARNING, "fleet: everybody on this machine can read %s",
				     fleet.keys_path);
	mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %zu keys are valid", fleet.keys.count);
	return true;
}

static int on_reload(int event, void *event_data, void *userdata)
{
	(void)event;
	(void)event_data;
	(void)userdata;
	if (!load_keys())
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old keys stay valid");
	fleet.reloading = fleet.ticking;
	return BROKER_SUCCESS;
}

static int on_tick(int event, void *event_data, void *userdata)
{
	(void)event;
	(void)event_data;
	(void)userdata;
	fleet.ticking = true;
	fleet.reloading = false;
	return BROKER_SUCCESS;
}

static const struct {
	int event;
	MOSQ_FUNC_generic_callback callback;
} callbacks[] = {
	{MOSQ_EVT_BASIC_AUTH, on_auth},        {MOSQ_EVT_ACL_CHECK, on_acl_check}, {MOSQ_EVT_MESSAGE, on_message},
	{MOSQ_EVT_RELOAD, on_reload},          {MOSQ_EVT_TICK, on_tick},           {MOSQ_EVT_DISCONNECT, on_disconnect},
	{EVENT_CLIENT_OFFLINE, on_disconnect},
};

EXPORTED int mosquitto_plugin_version(int supported_version_count, const int *supported_versions)
{
	for (int at = 0; at < supported_version_count; at++)
		if (supported_versions[at] == MOSQ_PLUGIN_VERSION)
			return MOSQ_PLUGIN_VERSION;
	return -1;
}

static bool take_options(const struct mosquitto_opt *options, int count)
{
	for (int at = 0; at < count; at++) {
		if (strcmp(options[at].key, "keys_file") != 0) {
			mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: unknown option plugin_opt_%s", options[at].key);
			return false;
		}
		free(fleet.keys_path);
		fleet.keys_path = strdup(options[at].value);
	}
	if (!fleet.keys_path)
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: plugin_opt_keys_file must name the file with the keys");
	return fleet.keys_path != NULL;
}

EXPORTED int mosquitto_plugin_init(mosquitto_plugin_id_t *identifier, void **userdata, struct mosquitto_opt *options,
				   int option_count)
{
	(void)userdata;
	if (!take_options(options, option_count) || !load_keys())
		return BROKER_INVAL;
	for (size_t at = 0; at < sizeof(callbacks) / sizeof(callbacks[0]); at++) {
		int result = mosquitto_callback_register(identifier, callbacks[at].event, callbacks[at].callback, NULL,
							 NULL);
		if (result != BROKER_SUCCESS && callbacks[at].event != EVENT_CLIENT_OFFLINE)
			return result;
	}
	fleet.boot_epoch = next_epoch();
	publish_boot(NULL);
	return BROKER_SUCCESS;
}

/* The broker has ended all clients before it comes here, so no callback follows. */
EXPORTED int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int option_count)
{
	(void)userdata;
	(void)options;
	(void)option_count;
	keys_free(&fleet.keys);
	clients_free(&fleet.clients);
	free(fleet.keys_path);
	fleet.keys_path = NULL;
	return BROKER_SUCCESS;
}
