#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker_codes.h"
#include "topics.h"

/* Everybody who logged in with this key. A shard session's Will tells that it is lost, so Wills are sent. */
static void end_sessions_of_key(const char *id)
{
	static const char *const kinds[] = {"device", "service"};
	char username[KEY_ID_LONGEST + 16];

	mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: key %s was retired", id);
	for (size_t at = 0; at < sizeof(kinds) / sizeof(kinds[0]); at++) {
		snprintf(username, sizeof(username), "%s.%s", kinds[at], id);
		mosquitto_kick_client_by_username(username, true);
	}
}

/* The broker tells on_disconnect of each, which changes `clients`, but not the list that is gone through here. */
static void end_revoked(const struct revoked *revoked, const struct clients *clients)
{
	char mac[MAC_LENGTH + 1];

	for (size_t at = 0; at < revoked->count; at++)
		if (clients_find(clients, revoked->macs[at])) {
			mac_format(revoked->macs[at], mac);
			mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: ended the connection of revoked device %s", mac);
			mosquitto_kick_client_by_clientid(mac, false);
		}
}

/* With `end`, ends the sessions of keys that are valid no longer. */
static bool read_keys(struct access *access, bool end)
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
			if (end)
				end_sessions_of_key(old.key[at].id);
		}
	keys_free(&old);
	if (!same)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %zu keys are valid", fresh.count);
	if (access->keys_file.seen.st_mode & S_IROTH)
		mosquitto_log_printf(LOG_LEVEL_WARNING, "fleet: everybody on this machine can read %s",
				     access->keys_file.path);
	return true;
}

static bool parse_revoked(struct access *access, FILE *file)
{
	const char *path = access->revoked_file.path;
	size_t before = access->revoked.count;
	size_t wrong = 0;

	if (!revoked_parse(&access->revoked, file, &wrong)) {
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: cannot use %s: unreadable, too long, or no memory", path);
		return false;
	}
	if (wrong)
		mosquitto_log_printf(LOG_LEVEL_ERROR,
				     "fleet: line %zu of %s does not begin with a MAC; nobody is taken off the list "
				     "until it does",
				     wrong, path);
	if (access->revoked.count || before)
		mosquitto_log_printf(LOG_LEVEL_NOTICE, "fleet: %zu devices are revoked", access->revoked.count);
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
	/* Without the file nobody is revoked, but a file that is lost does not let anybody in again. */
	if (!watched_exists(&access->revoked_file) && access->revoked.count == 0)
		return true;
	mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: cannot open %s: %s", access->revoked_file.path, strerror(errno));
	return false;
}

/* Returns the path of a file beside another one; to be freed. */
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
	return good && read_keys(access, false) && read_revoked(access);
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
	uint64_t mac;

	if (!credentials_valid(&access->keys, client_id, username, password))
		return false;
	return !mac_parse(client_id, &mac) || !revoked_holds(&access->revoked, mac);
}

void access_reload(struct access *access)
{
	if (!read_keys(access, false))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old keys stay valid");
	if (!read_revoked(access))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old list of revoked devices stays valid");
}

void access_poll(struct access *access, const struct clients *clients)
{
	if (watched_due(&access->keys_file) && !read_keys(access, clients != NULL))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old keys stay valid");
	if (!watched_due(&access->revoked_file))
		return;
	if (!read_revoked(access))
		mosquitto_log_printf(LOG_LEVEL_ERROR, "fleet: the old list of revoked devices stays valid");
	if (clients)
		end_revoked(&access->revoked, clients);
}
