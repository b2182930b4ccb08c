/* Mosquitto plugin of fleet: delivers to devices that never subscribe, checks credentials, limits topics and publishes
 * presence. The broker's only thread runs all of it, so nothing here may block. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "access.h"
#include "broker_codes.h"
#include "clients.h"
#include "messages.h"
#include "topics.h"

#define EXPORTED __attribute__((visibility("default")))
#define REFUSALS_LOGGED 10
#define REFUSALS_SECONDS 10
#define COUNTS_SECONDS 5
#define UNTICKED_SECONDS 5
/* Firmware sends a few messages a second at most. Without a limit, one device could fill the queue of its shard's
 * session, and the messages of all other devices of the shard would be dropped. */
#define MESSAGES_A_SECOND 50
#define MOST_MESSAGES_A_SECOND 100000

/* The counters since the start; published below COUNTS_TOPIC. */
enum count {
	DELIVERED,
	OFFLINE,
	REFUSED_CONNECTIONS,
	REFUSED_MESSAGES,
	REFUSED_SUBSCRIPTIONS,
	REFUSED_FLOODS,
	COUNTS
};

static const char *const count_names[COUNTS] = {
	[DELIVERED] = "delivered",
	[OFFLINE] = "offline",
	[REFUSED_CONNECTIONS] = "refused/connections",
	[REFUSED_MESSAGES] = "refused/messages",
	[REFUSED_SUBSCRIPTIONS] = "refused/subscriptions",
	[REFUSED_FLOODS] = "refused/floods",
};

static struct {
	struct access access;
	struct clients clients;
	int64_t epoch;
	int64_t boot_epoch;
	int64_t started, polled, published, refusals_since; /* seconds, monotonic */
	unsigned refusals;				    /* since refusals_since */
	uint64_t counts[COUNTS];
	unsigned messages_a_second;  /* of one device; 0 is no limit */
	bool slots_subscribed[SLOTS]; /* a shard has subscribed to the presence of this slot since the broker's start */
	bool ticking;		     /* the broker calls on_tick */
	bool unticked;		     /* the log says that it does not */
	bool reloading;		     /* from SIGHUP until the next tick */
} fleet;

static int64_t micros_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t seconds_now(void)
{
	return micros_now() / 1000000;
}

/* Returns microseconds since 1970, and always more than the last time. So epochs rise also across restarts and across
 * brokers. They stay below 2^53, and so exact in Lua and JSON, until the year 2255. */
static int64_t next_epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	int64_t micros = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	fleet.epoch = micros > fleet.epoch ? micros : fleet.epoch + 1;
	return fleet.epoch;
}

/* Any client can cause refusals without end. So only the first ones of each REFUSALS_SECONDS are logged; all are
 * counted. */
static void note_refusal(enum count what, const char *client_id, const char *detail)
{
	int64_t now = seconds_now();

	fleet.counts[what]++;
	if (now - fleet.refusals_since >= REFUSALS_SECONDS) {
		if (fleet.refusals > REFUSALS_LOGGED)
			mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %u more refusals were not logged",
					     fleet.refusals - REFUSALS_LOGGED);
		fleet.refusals = 0;
		fleet.refusals_since = now;
	}
	if (fleet.refusals++ < REFUSALS_LOGGED)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %s: client %.64s, %.128s", count_names[what],
				     client_id ? client_id : "-", detail ? detail : "-");
}

/* Mosquitto 2.0 with per_listener_settings calls no tick. Then the files are checked only when a client connects, and
 * no live connection can be ended. */
static void poll_without_tick(void)
{
	int64_t now = seconds_now();

	if (fleet.ticking || now == fleet.polled)
		return;
	fleet.polled = now;
	access_poll(&fleet.access, NULL);
	if (now - fleet.started >= UNTICKED_SECONDS && !fleet.unticked) {
		fleet.unticked = true;
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the broker calls no tick (per_listener_settings true?): "
						      "revoked devices stay connected, and no counters are published");
	}
}

/* Publishes the presence of devices that connected before their shard subscribed to their slot. This happens after a
 * restart of the broker: it has lost the shard's session, so the messages of these devices had no receiver. Only for the
 * first subscription to a slot: a later session of the shard has kept the messages. */
static void message_earlier(const char *client_id, const char *filter)
{
	char mac[MAC_LENGTH + 1];
	unsigned slot = presence_slot(filter);

	if (slot >= SLOTS || fleet.slots_subscribed[slot] || strncmp(client_id, SHARD_ID, strlen(SHARD_ID)) != 0)
		return;
	fleet.slots_subscribed[slot] = true;
	for (size_t at = 0; at < fleet.clients.size; at++) {
		const struct client *client = &fleet.clients.places[at];
		if (!client->connection)
			continue;
		mac_format(client->mac, mac);
		if (mac_slot(mac) == slot)
			message_presence(client_id, mac, true, client->epoch, NULL, client->user, false);
	}
}

static int on_auth(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_basic_auth *auth = event_data;
	const char *id = mosquitto_client_id(auth->client);
	uint64_t mac;

	(void)event;
	(void)userdata;
	poll_without_tick();
	if (!access_admits(&fleet.access, id, auth->username, auth->password)) {
		note_refusal(REFUSED_CONNECTIONS, id, auth->username);
		return BROKER_AUTH;
	}
	/* After SIGHUP the broker calls this again for every known session, also for offline ones, before it accepts
	 * new connections. It disconnects the clients that are refused now. */
	if (fleet.reloading || !mac_parse(id, &mac))
		return BROKER_SUCCESS;
	int64_t epoch = next_epoch();
	if (!clients_put(&fleet.clients, mac, auth->client, epoch, auth->username)) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: no memory for client %s", id);
		return BROKER_AUTH;
	}
	/* The broker sends CONNACK before it delivers this message. So an answer to it reaches the device. */
	message_presence(NULL, id, true, epoch, mosquitto_client_address(auth->client), auth->username, false);
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
	/* A new connection of the device took over: its AUTH comes before this DISCONNECT of the old one, so the device
	 * is online. */
	if (!client || client->connection != end->client)
		return BROKER_SUCCESS;
	/* Mosquitto 2.0 gives no reason (-1), 2.1 does. */
	message_presence(NULL, id, false, client->epoch, NULL, NULL, end->reason == BROKER_KEEPALIVE);
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
		note_refusal(act == ACT_SUBSCRIBE ? REFUSED_SUBSCRIPTIONS : REFUSED_MESSAGES, id, check->topic);
		return BROKER_ACL_DENIED;
	}
	uint64_t mac;
	if (act == ACT_WRITE && mac_parse(id, &mac) &&
	    !clients_may_send(&fleet.clients, mac, check->payloadlen, fleet.messages_a_second, micros_now())) {
		note_refusal(REFUSED_FLOODS, id, check->topic);
		return BROKER_ACL_DENIED;
	}
	/* This replaces a retained message, as the broker does not retain any. */
	if (act == ACT_SUBSCRIBE && strcmp(check->topic, BOOT_TOPIC) == 0)
		message_boot(id, fleet.boot_epoch);
	else if (act == ACT_SUBSCRIBE)
		message_earlier(id, check->topic);
	return BROKER_SUCCESS;
}

/* The broker disconnects the publisher on any result but these two. A denial becomes PUBACK 0x87, which means that the
 * device is offline. */
static int on_message(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_message *message = event_data;
	uint64_t mac;
	const char *target = down_target(message->topic, &mac);

	(void)event;
	(void)userdata;
	if (!target)
		return BROKER_SUCCESS;
	bool sent = clients_find(&fleet.clients, mac) &&
		    message_send(target, message->topic, message->payload, message->payloadlen, message->qos);
	fleet.counts[sent ? DELIVERED : OFFLINE]++;
	return sent ? BROKER_SUCCESS : BROKER_ACL_DENIED;
}

static int on_reload(int event, void *event_data, void *userdata)
{
	(void)event;
	(void)event_data;
	(void)userdata;
	access_reload(&fleet.access);
	fleet.reloading = fleet.ticking;
	return BROKER_SUCCESS;
}

static void publish_counts(void)
{
	message_count("devices", fleet.clients.count);
	message_count("revoked", fleet.access.revoked.count);
	message_count("minima", fleet.access.revoked.minima.count);
	for (size_t at = 0; at < COUNTS; at++)
		message_count(count_names[at], fleet.counts[at]);
}

/* Mosquitto 2.0 calls this at every iteration of its loop, at least ten times a second. 2.1 may sleep for a day. If a
 * plugin asks 2.1 to call it in a second, 2.1 leaves out the ticks of earlier iterations, and then forgets the request.
 * With `now_s` far in the past there is a tick at every iteration, and an iteration every second. */
static int on_tick(int event, void *event_data, void *userdata)
{
	struct mosquitto_evt_tick *tick = event_data;
	int64_t now = seconds_now();

	(void)event;
	(void)userdata;
	tick->now_s = 0;
	tick->next_s = 1;
	fleet.ticking = true;
	fleet.reloading = false;
	if (now != fleet.polled) {
		fleet.polled = now;
		access_poll(&fleet.access, &fleet.clients);
	}
	access_end_marked(&fleet.clients);
	if (now - fleet.published >= COUNTS_SECONDS) {
		fleet.published = now;
		publish_counts();
	}
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

static bool take_rate(const char *text)
{
	char *end = NULL;
	unsigned long rate = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;

	if (!end || *end || rate > MOST_MESSAGES_A_SECOND) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: plugin_opt_messages_a_second must be 0 to %d",
				     MOST_MESSAGES_A_SECOND);
		return false;
	}
	fleet.messages_a_second = (unsigned)rate;
	return true;
}

static bool take_options(const struct mosquitto_opt *options, int count, const char **keys, const char **revoked)
{
	for (int at = 0; at < count; at++) {
		if (strcmp(options[at].key, "keys_file") == 0) {
			*keys = options[at].value;
		} else if (strcmp(options[at].key, "revoked_file") == 0) {
			*revoked = options[at].value;
		} else if (strcmp(options[at].key, "messages_a_second") == 0) {
			if (!take_rate(options[at].value))
				return false;
		} else {
			mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: unknown option plugin_opt_%s", options[at].key);
			return false;
		}
	}
	if (!*keys)
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: plugin_opt_keys_file must name the file with the keys");
	return *keys != NULL;
}

EXPORTED int mosquitto_plugin_init(mosquitto_plugin_id_t *identifier, void **userdata, struct mosquitto_opt *options,
				   int option_count)
{
	const char *keys = NULL, *revoked = NULL;

	*userdata = identifier;
	/* A broker that loads the plugin for each listener calls this for each of them. */
	access_close(&fleet.access);
	fleet.messages_a_second = MESSAGES_A_SECOND;
	if (!take_options(options, option_count, &keys, &revoked) || !access_open(&fleet.access, keys, revoked))
		return BROKER_INVAL;
	for (size_t at = 0; at < sizeof(callbacks) / sizeof(callbacks[0]); at++) {
		int result = mosquitto_callback_register(identifier, callbacks[at].event, callbacks[at].callback, NULL,
							 NULL);
		if (result != BROKER_SUCCESS && callbacks[at].event != EVENT_CLIENT_OFFLINE)
			return result;
	}
	fleet.started = fleet.published = seconds_now();
	fleet.boot_epoch = next_epoch();
	message_boot(NULL, fleet.boot_epoch);
	return BROKER_SUCCESS;
}

/* The broker has ended all connections before it calls this, so no callback follows. */
EXPORTED int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int option_count)
{
	(void)options;
	(void)option_count;
	/* Mosquitto 2.0 does not free most of them otherwise. */
	for (size_t at = 0; at < sizeof(callbacks) / sizeof(callbacks[0]); at++)
		mosquitto_callback_unregister(userdata, callbacks[at].event, callbacks[at].callback, NULL);
	access_close(&fleet.access);
	clients_free(&fleet.clients);
	return BROKER_SUCCESS;
}
