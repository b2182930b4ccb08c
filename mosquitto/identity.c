#include "identity.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topics.h"
#include "watched_file.h"

#define LINE_LONGEST 1024
#define KEY_ID_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static bool is_key_id(const char *text)
{
	size_t length = strlen(text);

	return length >= 1 && length <= KEY_ID_LONGEST && strspn(text, KEY_ID_LETTERS) == length;
}

/* Returns the number of characters, as Python counts them: bytes 10xxxxxx continue a UTF-8 character. */
static size_t characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xC0) != 0x80;
	return count;
}

static const char *secret_of(const struct keys *keys, const char *id)
{
	for (size_t at = 0; at < keys->count; at++)
		if (strcmp(keys->key[at].id, id) == 0)
			return keys->key[at].secret;
	return NULL;
}

void keys_free(struct keys *keys)
{
	for (size_t at = 0; at < keys->count; at++) {
		OPENSSL_cleanse(keys->key[at].secret, strlen(keys->key[at].secret));
		free(keys->key[at].secret);
	}
	keys->count = 0;
}

/* Adds the key in a line. Returns the fault of the line, or NULL. */
static const char *keys_add(struct keys *keys, char *line)
{
	char *rest = NULL;
	const char *id = strtok_r(line, " \t\r\n", &rest);
	const char *secret = id ? strtok_r(NULL, " \t\r\n", &rest) : NULL;

	if (!id || id[0] == '#')
		return NULL;
	if (!secret || strtok_r(NULL, " \t\r\n", &rest))
		return "is not `id key`";
	if (!is_key_id(id))
		return "has a key id that is not 1 to 32 letters, digits, _ or -";
	if (characters(secret) < KEY_SHORTEST)
		return "has a key of fewer than 16 characters";
	if (secret_of(keys, id))
		return "has a key id for the second time";
	if (keys->count == KEYS_MOST)
		return "is one key too many (at most 64)";
	strcpy(keys->key[keys->count].id, id);
	keys->key[keys->count].secret = strdup(secret);
	if (!keys->key[keys->count].secret)
		return "cannot be stored: no memory";
	keys->count++;
	return NULL;
}

static bool keys_read_lines(struct keys *keys, FILE *file, const char *path, char *error, size_t error_size)
{
	char line[LINE_LONGEST];
	const char *wrong = NULL;
	size_t number = 0;

	while (!wrong && fgets(line, sizeof(line), file)) {
		number++;
		wrong = strchr(line, '\n') || feof(file) ? keys_add(keys, line) : "is too long";
	}
	if (wrong)
		snprintf(error, error_size, "line %zu of the keys file %s %s", number, path, wrong);
	else if (keys->count == 0)
		snprintf(error, error_size, "the keys file %s holds no key", path);
	OPENSSL_cleanse(line, sizeof(line));
	return !wrong && keys->count > 0;
}

bool keys_parse(struct keys *keys, FILE *file, const char *path, char *error, size_t error_size)
{
	struct keys fresh = {0};

	if (!keys_read_lines(&fresh, file, path, error, error_size)) {
		keys_free(&fresh);
		return false;
	}
	keys_free(keys);
	*keys = fresh;
	return true;
}

bool keys_read(struct keys *keys, const char *path, char *error, size_t error_size)
{
	FILE *file = regular_file_open(path);

	if (!file) {
		snprintf(error, error_size, "cannot open the keys file %s: %s", path, strerror(errno));
		return false;
	}
	bool good = keys_parse(keys, file, path, error, error_size);
	fclose(file);
	return good;
}

bool keys_hold(const struct keys *keys, const char *id, const char *secret)
{
	const char *held = secret_of(keys, id);

	return held && strcmp(held, secret) == 0;
}

bool password_derive(const char *secret, const char *client_id, const char *username, char out[PASSWORD_LENGTH + 1])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int digest_length = 0;
	size_t size = strlen(client_id) + 1 + strlen(username) + 1;
	char *text = malloc(size);

	if (!text)
		return false;
	snprintf(text, size, "%s|%s", client_id, username);
	bool good = HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)text, size - 1, digest,
			 &digest_length);
	free(text);
	return good && EVP_EncodeBlock((unsigned char *)out, digest, (int)digest_length) == PASSWORD_LENGTH;
}

bool is_service_id(const char *client_id)
{
	return strncmp(client_id, "fleet-", 6) == 0;
}

bool generation_parse(const char *text, uint32_t *generation)
{
	size_t length = strspn(text, "0123456789");
	uint64_t number = 0;

	if (length < 1 || length > 10 || text[length] || (text[0] == '0' && length > 1))
		return false;
	for (size_t at = 0; at < length; at++)
		number = number * 10 + (uint64_t)(text[at] - '0');
	*generation = (uint32_t)number;
	return number <= GENERATION_LARGEST;
}

/* Reads `<policy>.<generation>`. */
static bool policy_parse(const char *text, uint32_t *generation)
{
	static const char *const policies[] = {"first.", "code.", "closed."};

	if (strcmp(text, "open.0") == 0) {
		*generation = 0;
		return true;
	}
	for (size_t at = 0; at < sizeof(policies) / sizeof(policies[0]); at++)
		if (strncmp(text, policies[at], strlen(policies[at])) == 0)
			return generation_parse(text + strlen(policies[at]), generation) && *generation > 0;
	return false;
}

bool username_parse(const char *text, struct username *username)
{
	*username = (struct username){.device = strncmp(text, "device.", 7) == 0};
	if (!username->device && strncmp(text, "service.", 8) != 0)
		return false;
	const char *id = text + (username->device ? 7 : 8);
	size_t length = strcspn(id, ".");
	if (length > KEY_ID_LONGEST)
		return false;
	memcpy(username->key_id, id, length);
	if (!is_key_id(username->key_id))
		return false;
	return !id[length] || (username->device && policy_parse(id + length + 1, &username->generation));
}

bool credentials_valid(const struct keys *keys, const char *client_id, const char *username, const char *password)
{
	char expected[PASSWORD_LENGTH + 1];
	struct username name;
	uint64_t mac;

	if (!client_id || !username || !password || strlen(password) != PASSWORD_LENGTH)
		return false;
	if (!username_parse(username, &name) || !(name.device ? mac_parse(client_id, &mac) : is_service_id(client_id)))
		return false;
	const char *secret = secret_of(keys, name.key_id);
	if (!secret || !password_derive(secret, client_id, username, expected))
		return false;
	return CRYPTO_memcmp(expected, password, PASSWORD_LENGTH) == 0;
}
