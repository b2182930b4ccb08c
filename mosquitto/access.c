#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_codes.h"
#include "topics.h"

#define ENDED_AT_ONCE 1000
#define ENDS_LOGGED 10

/* Ends the sessions of services with this key, and marks those of devices. With Wills: that of a shard's session reports
 * the loss of the shard. */
static void end_sessions_of_key(const char *id, struct clients *clients)
{
	char username[KEY_ID_LONGEST + 16];
	struct username name;

	mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: key %s was retired", id);
	snprintf(username, sizeof(username), "service.%s", id);
	mosquitto_kick_client_by_username(username, true);
	for (size_t at = 0; at < clients->size; at++) {
		struct client *client = &clients->places[at];
		if (client->connection && username_parse(client->user, &name) && strcmp(name.key_id, id) == 0)
			clients_mark(clients, client);
	}
}

static bool is_refused(const struct revoked *revoked, uint64_t mac, uint32_t generation)
{
	return revoked_holds(revoked, mac) || generation < minima_of(&revoked->minima, mac);
}

static void mark_refused(const struct revoked *revoked, struct clients *clients)
{
	struct username name;

	for (size_t at = 0; at < clients->size; at++) {
		struct client *client = &clients->places[at];
		if (client->connection &&
		    (!username_parse(client->user, &name) || is_refused(revoked, client->mac, name.generation)))
			clients_mark(clients, client);
	}
}

/* The broker calls on_disconnect for each ended connection, which changes `clients`. So the MACs are copied first. */
void access_end_marked(struct clients *clients)
{
	static uint64_t macs[ENDED_AT_ONCE];
	char mac[MAC_LENGTH + 1];
	size_t count = clients_take_marked(clients, macs, ENDED_AT_ONCE);

	for (size_t at = 0; at < count; at++) {
		mac_format(macs[at], mac);
		if (at < ENDS_LOGGED)
			mosquitto_log_printf(LOG_LEVEL_NOTICE,
					     "fleet: ended the connection of device %s, its credentials are not valid any more",
					     mac);
		mosquitto_kick_client_by_clientid(mac, false);
	}
	if (count > ENDS_LOGGED)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: ended %zu more connections for this reason",
				     count - ENDS_LOGGED);
}

/* With `clients`, also ends the sessions of keys that are not valid any more. */
static bool read_keys(struct access *access, struct clients *clients)
{
	char error[512];
	struct keys fresh = {0};
	struct keys old = access->keys;
	bool same;

	watched_look(&access->keys_file);
	if (!keys_read(&fresh, access->keys_file.path, error, sizeof(error))) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: %s", error);
		return false;
	}
	access->keys = fresh;
	same = fresh.count == old.count;
	for (size_t at = 0; at < old.count; at++)
		if (!keys_hold(&fresh, old.key[at].id, old.key[at].secret)) {
			same = false;
			if (clients)
				end_sessions_of_key(old.key[at].id, clients);
		}
	keys_free(&old);
	if (!same)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %zu keys are valid", fresh.count);
	if (access->keys_file.seen.st_mode & S_IROTH)
		mosquitto_log_printf(LOG_LEVEL_WARNING, "fleet: every user of this machine can read %s",
				     access->keys_file.path);
	return true;
}

static bool parse_revoked(struct access *access, FILE *file)
{
	const char *path = access->revoked_file.path;
	size_t before = access->revoked.count + access->revoked.minima.count + access->revoked.minima.all;
	size_t wrong = 0;

	if (!revoked_parse(&access->revoked, file, &wrong)) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: cannot use %s: unreadable, too long, or no memory", path);
		return false;
	}
	if (wrong)
		mosquitto_log_printf(LOG_LEVEL_ERROR,
				     "fleet: line %zu of %s is neither a MAC nor a minimum; until it is corrected, no "
				     "device is removed from the list",
				     wrong, path);
	const struct minima *minima = &access->revoked.minima;
	if (access->revoked.count || minima->count || minima->all || before)
		mosquitto_log_printf(LOG_LEVEL_NOTICE,
				     "fleet: %zu devices are revoked; %zu have a minimum of their own, all others %u",
				     access->revoked.count, minima->count, (unsigned)minima->all);
	return true;
}

static bool read_revoked(struct access *access)
{
	watched_look(&access->revoked_file);
	FILE *file = regular_file_open(access->revoked_file.path);
	if (file) {
		bool good = parse_revoked(access, file);
		fclose(file);
		return good;
	}
	/* If there was never a file, no device is revoked. If the file was lost, the old list stays valid. */
	const struct minima *minima = &access->revoked.minima;
	if (!watched_exists(&access->revoked_file) && access->revoked.count == 0 && !minima->count && !minima->all)
		return true;
	mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: cannot open %s: %s", access->revoked_file.path, strerror(errno));
	return false;
}

/* Returns the path of a file in the directory of another one; the caller frees it. */
static char *beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int directory = slash ? (int)(slash + 1 - path) : 0;
	size_t size = (size_t)directory + strlen(name) + 1;
	char *found = malloc(size);

	if (found)
		snprintf(found, size, "%.*s%s", directory, path, name);
	return found;
}

bool access_open(struct access *access, const char *keys_path, const char *revoked_path)
{
	char *revoked = revoked_path ? strdup(revoked_path) : beside(keys_path, REVOKED_NAME);
	bool good = revoked && watched_open(&access->keys_file, keys_path) &&
		    watched_open(&access->revoked_file, revoked);

	free(revoked);
	if (!good)
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: no memory");
	return good && read_keys(access, NULL) && read_revoked(access);
}

void access_close(struct access *access)
{
	keys_free(&access->keys);
	revoked_free(&access->revoked);
	watched_close(&access->keys_file);
	watched_close(&access->revoked_file);
}

bool access_admits(const struct access *access, const char *client_id, const char *username, const char *password)
{
	struct username name;
	uint64_t mac;

	if (!credentials_valid(&access->keys, client_id, username, password) || !username_parse(username, &name))
		return false;
	return !mac_parse(client_id, &mac) || !is_refused(&access->revoked, mac, name.generation);
}

void access_reload(struct access *access)
{
	if (!read_keys(access, NULL))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old keys stay valid");
	if (!read_revoked(access))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old list of revoked devices stays valid");
}

void access_poll(struct access *access, struct clients *clients)
{
	if (watched_due(&access->keys_file) && !read_keys(access, clients))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old keys stay valid");
	if (!watched_due(&access->revoked_file))
		return;
	if (!read_revoked(access))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old list of revoked devices stays valid");
	if (clients)
		mark_refused(&access->revoked, clients);
}
