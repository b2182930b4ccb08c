/* Unit tests of the plugin's parts that need no broker. `make sanitize` runs them under sanitizers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients.h"
#include "identity.h"
#include "topics.h"
#include "unit_test.h"

int failures;

static void test_only_canonical_macs_parse(void)
{
	static const char *const wrong[] = {
		"",      "a",     "AA:BB:CC:DD:EE:FF", "aa:bb:cc:dd:ee",    "aa:bb:cc:dd:ee:f", MAC ":00",
		MAC " ", " " MAC, "aa-bb-cc-dd-ee-ff", "aabb:cc:dd:ee:ff:", "gg:bb:cc:dd:ee:ff"};
	uint64_t mac = 0;

	CHECK(mac_parse(MAC, &mac) && mac == UINT64_C(0xaabbccddeeff));
	for (size_t at = 0; at < sizeof(wrong) / sizeof(wrong[0]); at++)
		CHECK(!mac_parse(wrong[at], &mac));
}

/* The values come from fleet.wire.topics.slot. */
static void test_slots_are_those_of_the_topic_plan(void)
{
	CHECK(mac_slot(MAC) == 132);
	CHECK(mac_slot("00:00:00:00:00:00") == 117);
	CHECK(mac_slot(OTHER) == 99);
	CHECK(mac_slot("ff:ff:ff:ff:ff:ff") == 136);
}

static void test_slot_of_a_filter_for_presence(void)
{
	CHECK(presence_slot("fleet/presence/0/+") == 0);
	CHECK(presence_slot("fleet/presence/255/+") == 255);
	CHECK(presence_slot("fleet/presence/256/+") == SLOTS);
	CHECK(presence_slot("fleet/presence/07/+") == SLOTS);
	CHECK(presence_slot("fleet/presence/-1/+") == SLOTS);
	CHECK(presence_slot("fleet/presence/7/" MAC) == SLOTS);
	CHECK(presence_slot("fleet/presence/#") == SLOTS);
	CHECK(presence_slot("") == SLOTS);
}

static void test_device_has_its_two_topics_only(void)
{
	static const char *const unwritable[] = {"fleet/up/132/" OTHER,
						 "fleet/up/99/" MAC,
						 "fleet/up/0132/" MAC,
						 "fleet/up/132/" MAC "/x",
						 "fleet/down/" MAC,
						 "fleet/presence/132/" MAC,
						 "fleet/shard/3/lost",
						 "",
						 "$SYS/x"};
	static const char *const unsubscribable[] = {"#",
						     "+/+/+",
						     "fleet/down/+",
						     "fleet/down/" OTHER,
						     "fleet/up/#",
						     "$SYS/#",
						     "$share/g/fleet/down/" MAC,
						     BOOT_TOPIC};

	CHECK(topic_allowed(MAC, ACT_WRITE, "fleet/up/132/" MAC, false));
	CHECK(!topic_allowed(MAC, ACT_WRITE, "fleet/up/132/" MAC, true));
	CHECK(topic_allowed(MAC, ACT_SUBSCRIBE, "fleet/down/" MAC, false));
	CHECK(!topic_allowed(MAC, ACT_READ, "fleet/down/" MAC, false));
	for (size_t at = 0; at < sizeof(unwritable) / sizeof(unwritable[0]); at++)
		CHECK(!topic_allowed(MAC, ACT_WRITE, unwritable[at], false));
	for (size_t at = 0; at < sizeof(unsubscribable) / sizeof(unsubscribable[0]); at++)
		CHECK(!topic_allowed(MAC, ACT_SUBSCRIBE, unsubscribable[at], false));
}

static void test_service_has_its_topics_only(void)
{
	static const char *const writable[] = {"fleet/down/" MAC, "fleet/shard/0/lost", "fleet/shard/255/lost"};
	static const char *const unwritable[] = {
		"fleet/down/AA",         "fleet/down/" MAC "/x",    "fleet/shard//lost",
		"fleet/shard/1234/lost", "fleet/shard/x/lost",      "fleet/shard/1/lost/",
		"fleet/up/132/" MAC,     "fleet/presence/132/" MAC, BOOT_TOPIC};
	static const char *const readable[] = {"fleet/up/#",    "fleet/up/7/+", "fleet/presence/#",
					       "fleet/shard/#", "$SYS/#",       BOOT_TOPIC};
	static const char *const unreadable[] = {
		"#", "fleet/#", "fleet/+/#", "fleet/down/#", "$share/g/fleet/up/#", "fleet/broker/#"};

	for (size_t at = 0; at < sizeof(writable) / sizeof(writable[0]); at++) {
		CHECK(topic_allowed("fleet-x", ACT_WRITE, writable[at], false));
		CHECK(!topic_allowed("fleet-x", ACT_WRITE, writable[at], true));
	}
	for (size_t at = 0; at < sizeof(unwritable) / sizeof(unwritable[0]); at++)
		CHECK(!topic_allowed("fleet-x", ACT_WRITE, unwritable[at], false));
	for (size_t at = 0; at < sizeof(readable) / sizeof(readable[0]); at++)
		CHECK(topic_allowed("fleet-x", ACT_SUBSCRIBE, readable[at], false));
	for (size_t at = 0; at < sizeof(unreadable) / sizeof(unreadable[0]); at++)
		CHECK(!topic_allowed("fleet-x", ACT_SUBSCRIBE, unreadable[at], false));
	CHECK(!topic_allowed("stranger", ACT_SUBSCRIBE, "fleet/up/#", false));
}

static bool read_keys(struct keys *keys, const char *text, char *error)
{
	char path[] = "/tmp/fleet-keys-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	fputs(text, file);
	fclose(file);
	bool good = keys_read(keys, path, error, 256);
	unlink(path);
	return good;
}

/* The passwords come from fleet.wire.identity.password. */
static void test_passwords_are_those_of_the_contract(void)
{
	struct keys keys = {0};
	char error[256];
	const char *device = "9QSSp2YYhw7OvL1pPJOM7XzgIFSVTkFiDpV1ZOHuicI=";
	const char *service = "6NeBt+AdqIPq9ukEuXS/xvgTiQWc1GTgpjoEBAve03I=";

	CHECK(read_keys(&keys, "# newest first\nk-2_X ключ-длинный-ещё1\n\nk1 " KEY "\n", error));
	CHECK(keys.count == 2);
	CHECK(keys_hold(&keys, "k1", KEY) && !keys_hold(&keys, "k1", KEY "x") && !keys_hold(&keys, "k2", KEY));
	CHECK(credentials_valid(&keys, MAC, "device.k1", device));
	CHECK(credentials_valid(&keys, "fleet-shard-3", "service.k-2_X", service));
	CHECK(!credentials_valid(&keys, OTHER, "device.k1", device));
	CHECK(!credentials_valid(&keys, MAC, "device.k-2_X", device));
	CHECK(!credentials_valid(&keys, MAC, "device.k3", device));
	CHECK(!credentials_valid(&keys, MAC, "device.k1", "9QSSp2YYhw7OvL1pPJOM7XzgIFSVTkFiDpV1ZOHuicJ="));
	CHECK(!credentials_valid(&keys, NULL, "device.k1", device));
	CHECK(!credentials_valid(&keys, MAC, NULL, device));
	CHECK(!credentials_valid(&keys, MAC, "device.k1", NULL));
	CHECK(!credentials_valid(&keys, MAC, "", ""));
	keys_free(&keys);
}

static void test_kind_and_client_id_must_fit(void)
{
	static const struct {
		const char *id, *username;
		bool valid;
	} cases[] = {{MAC, "device.k1", true},
		     {"fleet-a", "service.k1", true},
		     {"fleet-a", "device.k1", false},
		     {MAC, "service.k1", false},
		     {"AA:BB:CC:DD:EE:FF", "device.k1", false},
		     {"fleet", "service.k1", false},
		     {MAC, "device.k1.first.3", true},
		     {MAC, "device.k1.first.03", false},
		     {"fleet-a", "device.k1.first.3", false},
		     {MAC, "admin.k1", false},
		     {MAC, "device.", false}};
	struct keys keys = {0};
	char error[256], password[PASSWORD_LENGTH + 1];

	CHECK(read_keys(&keys, "k1 " KEY, error));
	for (size_t at = 0; at < sizeof(cases) / sizeof(cases[0]); at++) {
		CHECK(password_derive(KEY, cases[at].id, cases[at].username, password));
		CHECK(credentials_valid(&keys, cases[at].id, cases[at].username, password) == cases[at].valid);
	}
	keys_free(&keys);
}

static void test_bad_keys_file_changes_nothing_and_says_why(void)
{
	char longest[1200];
	struct keys keys = {0};
	char error[256];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	const char *wrong[] = {"",
			       "\n# nothing\n",
			       "k1\n",
			       "k1 short\n",
			       "k! " KEY "\n",
			       "k1 " KEY " more\n",
			       "k1 " KEY "\nk1 " KEY "2\n",
			       longest};
	CHECK(read_keys(&keys, "k1 " KEY "\r\n", error));
	for (size_t at = 0; at < sizeof(wrong) / sizeof(wrong[0]); at++) {
		error[0] = '\0';
		CHECK(!read_keys(&keys, wrong[at], error));
		CHECK(strstr(error, "/tmp/fleet-keys-") != NULL);
		CHECK(keys.count == 1 && strcmp(keys.key[0].secret, KEY) == 0);
	}
	CHECK(!keys_read(&keys, "/nonexistent/keys", error, sizeof(error)));
	keys_free(&keys);
}

/* Compares the table with an array, for MACs that collide, in random order. */
static void test_clients_remember_exactly_what_was_put(void)
{
	enum { MACS = 512 };
	static int64_t model[MACS];
	struct clients clients = {0};
	size_t count = 0;

	for (int step = 0; step < 200000; step++) {
		size_t at = (size_t)rand() % MACS;
		uint64_t mac = UINT64_C(0x240ac4000000) + at * 0x1000;
		if (rand() % 2) {
			count += model[at] == 0;
			model[at] = step + 1;
			CHECK(clients_put(&clients, mac, &model[at], step + 1, "device.k1"));
		} else {
			count -= model[at] != 0;
			model[at] = 0;
			clients_drop(&clients, mac);
		}
		at = (size_t)rand() % MACS;
		const struct client *found = clients_find(&clients, UINT64_C(0x240ac4000000) + at * 0x1000);
		CHECK((found != NULL) == (model[at] != 0));
		CHECK(!found || (found->epoch == model[at] && found->connection == &model[at]));
		CHECK(clients.count == count);
	}
	clients_free(&clients);
	CHECK(clients_find(&clients, 1) == NULL);
}

static void test_a_client_may_send_so_much_and_no_more(void)
{
	struct clients clients = {0};
	int64_t now = 5000000;
	int sent = 0, connection = 0;

	CHECK(clients_may_send(&clients, 7, 1, 50, now));
	CHECK(clients_put(&clients, 7, &connection, 1, "u"));
	CHECK(clients_put(&clients, 8, &connection, 1, "u"));
	while (sent < 1000 && clients_may_send(&clients, 7, 100, 50, now))
		sent++;
	CHECK(sent == 500);
	CHECK(clients_may_send(&clients, 8, 100, 50, now));
	CHECK(!clients_may_send(&clients, 7, 100, 50, now + 19999));
	CHECK(clients_may_send(&clients, 7, 100, 50, now + 20000));
	CHECK(!clients_may_send(&clients, 7, 100, 50, now + 20000));
	/* A new connection does not reset the limit; silence does, up to a whole burst. */
	CHECK(clients_put(&clients, 7, &sent, 2, "u"));
	CHECK(!clients_may_send(&clients, 7, 100, 50, now + 20000));
	now += INT64_C(3600000000);
	for (sent = 0; sent < 1000 && clients_may_send(&clients, 7, 64 * 1024, 50, now); sent++)
		;
	CHECK(sent == 29); /* 500 / 17 */
	for (sent = 0; sent < 1000; sent++)
		CHECK(clients_may_send(&clients, 7, 1 << 20, 0, now));
	clients_free(&clients);
}

static void test_marked_clients_are_taken_once(void)
{
	enum { MARKED = 100 };
	static int connection;
	struct clients clients = {0};
	uint64_t macs[MARKED];
	bool taken[2 * MARKED + 1] = {false};

	for (uint64_t mac = 1; mac <= 2 * MARKED; mac++)
		CHECK(clients_put(&clients, mac, &connection, 1, mac % 2 ? "device.k1" : "device.k2.first.7"));
	for (size_t at = 0; at < clients.size; at++)
		if (clients.places[at].connection && clients.places[at].mac % 2 == 0) {
			clients_mark(&clients, &clients.places[at]);
			clients_mark(&clients, &clients.places[at]);
			CHECK(strcmp(clients.places[at].user, "device.k2.first.7") == 0);
		}
	CHECK(clients.ending == MARKED);
	/* Marks vanish with a disconnection and with a new connection. */
	clients_drop(&clients, 2);
	CHECK(clients_put(&clients, 4, &connection, 2, "device.k2.first.8") && clients.ending == MARKED - 2);
	size_t count = clients_take_marked(&clients, macs, 30);
	CHECK(count == 30 && clients.ending == MARKED - 32);
	count += clients_take_marked(&clients, macs + count, MARKED);
	CHECK(count == MARKED - 2 && clients.ending == 0 && clients_take_marked(&clients, macs, MARKED) == 0);
	for (size_t at = 0; at < count; at++) {
		CHECK(macs[at] % 2 == 0 && macs[at] > 4 && !taken[macs[at]]);
		taken[macs[at]] = true;
	}
	clients_free(&clients);
}

/* tests/integration/mosquitto/test_plugin_usernames.py compares with fleet.wire.identity. */
static void test_user_names_say_kind_key_and_generation(void)
{
	static const struct {
		const char *text;
		bool good, device;
		uint32_t generation;
	} cases[] = {
		{"device.k1", true, true, 0},
		{"service.k1", true, false, 0},
		{"device.k1.open.0", true, true, 0},
		{"device.k1.first.1", true, true, 1},
		{"device.k1.code.10", true, true, 10},
		{"device.k1.closed.2147483647", true, true, GENERATION_LARGEST},
		{"device.k1.closed.2147483648", false, false, 0},
		{"device.k1.first.4294967297", false, false, 0},
		{"device.k1.first.99999999999999999999", false, false, 0},
		{"device.k1.first.0", false, false, 0},
		{"device.k1.first.01", false, false, 0},
		{"device.k1.first.+1", false, false, 0},
		{"device.k1.first.-1", false, false, 0},
		{"device.k1.first. 1", false, false, 0},
		{"device.k1.first.1 ", false, false, 0},
		{"device.k1.first.1.", false, false, 0},
		{"device.k1.first.", false, false, 0},
		{"device.k1.first", false, false, 0},
		{"device.k1.", false, false, 0},
		{"device.k1.First.1", false, false, 0},
		{"device.k1.other.1", false, false, 0},
		{"device.k1.open.1", false, false, 0},
		{"device.k1.open.00", false, false, 0},
		{"service.k1.first.1", false, false, 0},
		{"device..first.1", false, false, 0},
		{"device.", false, false, 0},
		{"Device.k1", false, false, 0},
		{"", false, false, 0},
		{"device.kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk.first.1", true, true, 1},
		{"device.kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk.first.1", false, false, 0},
		{"device.k1.first.\xd9\xa1", false, false, 0},
	};
	struct username username;

	for (size_t at = 0; at < sizeof(cases) / sizeof(cases[0]); at++) {
		CHECK(username_parse(cases[at].text, &username) == cases[at].good);
		if (cases[at].good)
			CHECK(username.device == cases[at].device && username.generation == cases[at].generation);
	}
	CHECK(username_parse("device.a-B_9.first.3", &username) && strcmp(username.key_id, "a-B_9") == 0);
}

static void test_macs_are_written_as_they_are_read(void)
{
	char text[MAC_LENGTH + 1];

	mac_format(UINT64_C(0x240ac4123456), text);
	CHECK(strcmp(text, OTHER) == 0);
	mac_format(0, text);
	CHECK(strcmp(text, "00:00:00:00:00:00") == 0);
}

int main(void)
{
	srand(1);
	test_only_canonical_macs_parse();
	test_slots_are_those_of_the_topic_plan();
	test_slot_of_a_filter_for_presence();
	test_device_has_its_two_topics_only();
	test_service_has_its_topics_only();
	test_passwords_are_those_of_the_contract();
	test_kind_and_client_id_must_fit();
	test_bad_keys_file_changes_nothing_and_says_why();
	test_clients_remember_exactly_what_was_put();
	test_a_client_may_send_so_much_and_no_more();
	test_marked_clients_are_taken_once();
	test_user_names_say_kind_key_and_generation();
	test_macs_are_written_as_they_are_read();
	test_files();
	printf("%s\n", failures ? "FAILED" : "all tests passed");
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
