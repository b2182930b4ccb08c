/* Runs one fuzz input against a function that reads input of clients or of files. Called by libFuzzer or fuzz_random.c.
 * The first byte selects the target; zero bytes separate texts. A violated property aborts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identity.h"
#include "revoked.h"
#include "topics.h"

#define KEY "0123456789abcdef"
#define TEXTS 3
#define MUST(claim)                                                                                                    \
	do {                                                                                                           \
		if (!(claim)) {                                                                                        \
			fprintf(stderr, "broken promise: %s\n", #claim);                                               \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	return strlen(text) >= strlen(with) && strcmp(text + strlen(text) - strlen(with), with) == 0;
}

static void check_device(const char *mac, const char *topic)
{
	MUST(!topic_allowed(mac, ACT_READ, topic, false));
	MUST(!topic_allowed(mac, ACT_WRITE, topic, true));
	if (topic_allowed(mac, ACT_WRITE, topic, false))
		MUST(begins(topic, "fleet/up/") && ends(topic, mac) && strlen(topic) <= 9 + 3 + 1 + MAC_LENGTH);
	if (topic_allowed(mac, ACT_SUBSCRIBE, topic, false))
		MUST(begins(topic, "fleet/down/") && ends(topic, mac) && strlen(topic) == 11 + MAC_LENGTH);
}

static void check_service(const char *id, const char *topic)
{
	uint64_t mac;
	bool writes = topic_allowed(id, ACT_WRITE, topic, false);

	MUST(!topic_allowed(id, ACT_WRITE, topic, true));
	MUST(!writes || down_target(topic, &mac) || (begins(topic, "fleet/shard/") && ends(topic, "/lost")));
	MUST(!writes || !strpbrk(topic, "#+$"));
	/* A service may not subscribe to commands of devices, or to all topics. */
	if (topic_allowed(id, ACT_SUBSCRIBE, topic, false))
		MUST(!begins(topic, "fleet/down") && !begins(topic, "$share") && topic[0] != '#' && topic[0] != '+');
}

static void fuzz_topics(char *const *text)
{
	uint64_t mac;
	char name[MAC_LENGTH + 1];
	const char *target = down_target(text[1], &mac);

	MUST(!target || (target == text[1] + 11 && mac < UINT64_C(1) << 48));
	if (mac_parse(text[0], &mac)) {
		mac_format(mac, name);
		MUST(strcmp(name, text[0]) == 0);
		MUST(mac_slot(name) < 256);
		check_device(text[0], text[1]);
	} else if (is_service_id(text[0])) {
		check_service(text[0], text[1]);
	} else {
		for (int act = ACT_READ; act <= ACT_SUBSCRIBE; act++)
			MUST(!topic_allowed(text[0], (enum act)act, text[1], false));
	}
}

/* Each user name has only one spelling. */
static void check_username(const char *text, bool known, const struct username *name)
{
	static const char *const policies[] = {"first", "code", "closed"};
	char spelled[USERNAME_LONGEST + 1];
	bool same = false;

	snprintf(spelled, sizeof(spelled), "%s.%s", name->device ? "device" : "service", name->key_id);
	same = strcmp(text, spelled) == 0;
	snprintf(spelled, sizeof(spelled), "device.%s.open.0", name->key_id);
	same = same || strcmp(text, spelled) == 0;
	for (size_t at = 0; at < sizeof(policies) / sizeof(policies[0]); at++) {
		snprintf(spelled, sizeof(spelled), "device.%s.%s.%u", name->key_id, policies[at], (unsigned)name->generation);
		same = same || (name->generation && strcmp(text, spelled) == 0);
	}
	MUST(!known || (same && strlen(text) <= USERNAME_LONGEST && name->generation <= GENERATION_LARGEST));
}

static void fuzz_credentials(char *const *text)
{
	char secret[] = KEY, password[PASSWORD_LENGTH + 1];
	struct keys keys = {.count = 1, .key = {{.id = "k1", .secret = secret}}};
	uint64_t mac;
	struct username name;
	bool known = username_parse(text[1], &name);
	bool fits = known && strcmp(name.key_id, "k1") == 0 &&
		    (name.device ? mac_parse(text[0], &mac) : is_service_id(text[0]));

	check_username(text[1], known, &name);

	MUST(password_derive(KEY, text[0], text[1], password));
	MUST(credentials_valid(&keys, text[0], text[1], password) == fits);
	MUST(credentials_valid(&keys, text[0], text[1], text[2]) == (fits && strcmp(text[2], password) == 0));
}

static void check_keys(const struct keys *keys)
{
	MUST(keys->count >= 1 && keys->count <= KEYS_MOST);
	for (size_t at = 0; at < keys->count; at++) {
		MUST(strlen(keys->key[at].id) >= 1 && strlen(keys->key[at].id) <= KEY_ID_LONGEST);
		MUST(strlen(keys->key[at].secret) >= KEY_SHORTEST);
		/* No id occurs twice: the first key with this id is this one. */
		MUST(keys_hold(keys, keys->key[at].id, keys->key[at].secret));
	}
}

static void fuzz_keys(FILE *file)
{
	char error[128] = "";
	struct keys keys = {.count = 1, .key = {{.id = "old", .secret = strdup(KEY)}}};
	bool good = keys_parse(&keys, file, "keys", error, sizeof(error));

	check_keys(&keys);
	MUST(good == (error[0] == '\0'));
	MUST(good || (keys.count == 1 && keys_hold(&keys, "old", KEY)));
	keys_free(&keys);
}

/* A line that is a MAC counts, whatever else is in the file. */
static void check_lines(const struct revoked *revoked, const char *text, size_t size)
{
	const char *end = text + size;
	uint64_t mac;

	for (const char *line = text; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t length = (size_t)((stop ? stop : end) - line);
		char *copy = strndup(line, length);
		bool whole = strlen(copy) == length;
		if (whole && mac_parse(copy, &mac))
			MUST(revoked_holds(revoked, mac));
		/* The same holds for a minimum of one digit. */
		if (whole && length == 4 + MAC_LENGTH && begins(copy, ">=") && copy[2] > '0' && copy[2] <= '9' &&
		    copy[3] == ' ' && mac_parse(copy + 4, &mac))
			MUST(minima_of(&revoked->minima, mac) >= (uint32_t)(copy[2] - '0'));
		free(copy);
		line += length + 1;
	}
}

static void fuzz_revoked(FILE *file, const char *text, size_t size)
{
	struct revoked revoked = {.macs = malloc(sizeof(uint64_t)), .count = 1};
	size_t wrong = 0;

	revoked.macs[0] = UINT64_C(0xaabbccddeeff);
	revoked.minima.all = 2;
	MUST(minima_add(&revoked.minima, UINT64_C(0xaabbccddeeff), 5));
	MUST(revoked_parse(&revoked, file, &wrong));
	MUST(!wrong || revoked_holds(&revoked, UINT64_C(0xaabbccddeeff)));
	MUST(!wrong || minima_of(&revoked.minima, UINT64_C(0xaabbccddeeff)) >= 5);
	MUST(!wrong || revoked.minima.all >= 2);
	for (size_t at = 0; at < revoked.minima.count; at++) {
		const struct minimum *one = &revoked.minima.entries[at];
		MUST(one->generation >= 1 && one->generation <= GENERATION_LARGEST);
		MUST(at == 0 || revoked.minima.entries[at - 1].mac < one->mac);
	}
	for (size_t at = 1; at < revoked.count; at++)
		MUST(revoked.macs[at - 1] < revoked.macs[at]);
	check_lines(&revoked, text, size);
	revoked_free(&revoked);
}

static void fuzz_file(unsigned which, const char *text, size_t size)
{
	/* A copy of the exact length, so that AddressSanitizer sees a read past the end. */
	char *copy = malloc(size);
	FILE *file = copy ? fmemopen(memcpy(copy, text, size), size, "r") : NULL;

	if (!file)
		abort();
	if (which == 2)
		fuzz_keys(file);
	else
		fuzz_revoked(file, copy, size);
	fclose(file);
	free(copy);
}

static void fuzz_texts(unsigned which, const char *from, size_t left)
{
	char *text[TEXTS];

	for (size_t at = 0; at < TEXTS; at++) {
		size_t length = strnlen(from, left);
		text[at] = strndup(from, length);
		left -= length < left ? length + 1 : length;
		from += left ? length + 1 : 0;
	}
	if (which == 0)
		fuzz_topics(text);
	else
		fuzz_credentials(text);
	for (size_t at = 0; at < TEXTS; at++)
		free(text[at]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size < 2)
		return 0;
	unsigned which = data[0] % 4;
	const char *rest = (const char *)data + 1;
	if (which < 2)
		fuzz_texts(which, rest, size - 1);
	else
		fuzz_file(which, rest, size - 1);
	return 0;
}
