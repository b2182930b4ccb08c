/* Credentials: the keys, user names, and passwords derived from the keys. The same rules as fleet/wire/identity.py. */
#ifndef FLEET_IDENTITY_H
#define FLEET_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define KEYS_MOST 64
#define KEY_ID_LONGEST 32
#define KEY_SHORTEST 16 /* characters */
#define PASSWORD_LENGTH 44

#define USERNAME_LONGEST (7 + KEY_ID_LONGEST + 1 + 6 + 1 + 10)
#define GENERATION_LARGEST INT32_MAX

/* The parts of a user name. In a user name without a policy the generation is 0. */
struct username {
	bool device; /* else service */
	char key_id[KEY_ID_LONGEST + 1];
	uint32_t generation;
};

struct keys {
	size_t count;
	struct {
		char id[KEY_ID_LONGEST + 1];
		char *secret;
	} key[KEYS_MOST];
};

/* Reads lines `id key`; `#` begins a comment line. On failure, returns false, writes one line for the operator to
 * `error`, and does not change `keys`. */
bool keys_read(struct keys *keys, const char *path, char *error, size_t error_size);

/* The same from an open file; `path` is for the error only. */
bool keys_parse(struct keys *keys, FILE *file, const char *path, char *error, size_t error_size);

/* Whether `secret` is the key with this id. */
bool keys_hold(const struct keys *keys, const char *id, const char *secret);

void keys_free(struct keys *keys);

/* Writes base64(HMAC-SHA256(secret, client_id + "|" + username)) with its final 0. */
bool password_derive(const char *secret, const char *client_id, const char *username, char out[PASSWORD_LENGTH + 1]);

/* Whether a text is a generation: a decimal number up to GENERATION_LARGEST without a leading zero. */
bool generation_parse(const char *text, uint32_t *generation);

/* Whether a text is a user name: `device.<key id>`, `service.<key id>`, `device.<key id>.open.0`, or
 * `device.<key id>.<policy>.<generation>` with the policy first, code or closed and a generation of 1 or more. */
bool username_parse(const char *text, struct username *username);

/* Whether these credentials prove a device (client id: a canonical MAC) or a service (client id: begins with `fleet-`).
 * Any argument may be NULL. */
bool credentials_valid(const struct keys *keys, const char *client_id, const char *username, const char *password);

bool is_service_id(const char *client_id);

#endif
