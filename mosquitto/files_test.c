/* Unit tests of the list of revoked devices, and of files that change. Part of unit_test. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "revoked.h"
#include "topics.h"
#include "unit_test.h"
#include "watched_file.h"

static bool parse_revoked(struct revoked *revoked, const char *text, size_t size, size_t *wrong)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, size, "r");
	bool good = revoked_parse(revoked, file, wrong);

	fclose(file);
	return good;
}

static void test_revoked_are_read_in_any_spelling_and_order(void)
{
	static const char text[] = "# stolen ones\n\nff:ff:ff:ff:ff:ff\r\n  AA-BB-CC-DD-EE-FF stolen 2026-02-30\n" OTHER
				   "\tagain\n" OTHER;
	struct revoked revoked = {0};
	size_t wrong = 7;

	CHECK(parse_revoked(&revoked, text, sizeof(text) - 1, &wrong) && wrong == 0);
	CHECK(revoked.count == 3);
	CHECK(revoked_holds(&revoked, UINT64_C(0xaabbccddeeff)) && revoked_holds(&revoked, UINT64_C(0x240ac4123456)));
	CHECK(revoked_holds(&revoked, UINT64_C(0xffffffffffff)) && !revoked_holds(&revoked, UINT64_C(0xaabbccddeefe)));
	CHECK(parse_revoked(&revoked, "\n", 1, &wrong) && revoked.count == 0 && wrong == 0);
	CHECK(!revoked_holds(&revoked, UINT64_C(0xaabbccddeeff)));
	revoked_free(&revoked);
}

static void test_wrong_line_lets_nobody_in_and_hides_no_other_line(void)
{
	static const char *const wrong_lines[] = {"aa:bb:cc:dd:ee\n", "0\n", "a\0b\n", MAC ":00\n", MAC "#\n"};
	char text[256];
	size_t wrong;

	for (size_t at = 0; at < sizeof(wrong_lines) / sizeof(wrong_lines[0]); at++) {
		struct revoked revoked = {0};
		CHECK(parse_revoked(&revoked, MAC "\n", MAC_LENGTH + 1, &wrong));
		size_t length = at == 2 ? 4 : strlen(wrong_lines[at]);
		memcpy(text, "# one\n", 6);
		memcpy(text + 6, wrong_lines[at], length);
		memcpy(text + 6 + length, OTHER, MAC_LENGTH);
		CHECK(parse_revoked(&revoked, text, 6 + length + MAC_LENGTH, &wrong));
		CHECK(wrong == 2 && revoked.count == 2);
		CHECK(revoked_holds(&revoked, UINT64_C(0xaabbccddeeff)));
		CHECK(revoked_holds(&revoked, UINT64_C(0x240ac4123456)));
		revoked_free(&revoked);
	}
}

static void test_long_list_is_found_and_one_too_long_is_refused(void)
{
	enum { STEP = 7 };
	size_t size = (size_t)(REVOKED_MOST + 1) * (MAC_LENGTH + 1), wrong;
	char *text = malloc(size + 1), name[MAC_LENGTH + 1];
	struct revoked revoked = {0};

	for (uint64_t at = 0; at <= REVOKED_MOST; at++) {
		mac_format((at * 7919 % (REVOKED_MOST + 1)) * STEP, name);
		memcpy(text + at * (MAC_LENGTH + 1), name, MAC_LENGTH);
		text[at * (MAC_LENGTH + 1) + MAC_LENGTH] = '\n';
	}
	CHECK(parse_revoked(&revoked, text, size - MAC_LENGTH - 1, &wrong) && revoked.count == REVOKED_MOST);
	CHECK(!revoked_holds(&revoked, STEP * UINT64_C(500) + 1) && revoked_holds(&revoked, STEP * UINT64_C(500)));
	CHECK(!parse_revoked(&revoked, text, size, &wrong) && revoked.count == REVOKED_MOST);
	revoked_free(&revoked);
	free(text);
}

static void test_minima_are_read_beside_revoked_devices(void)
{
	static const char text[] = "# what counts\n>=1 *\n>=3 " MAC "\n  >=2147483647\tAA-BB-CC-DD-EE-FE a note\r\n" OTHER
				   "\n>=2 " MAC "\n";
	struct revoked revoked = {0};
	size_t wrong = 7;

	CHECK(parse_revoked(&revoked, text, sizeof(text) - 1, &wrong) && wrong == 0);
	CHECK(revoked.count == 1 && revoked.minima.count == 2 && revoked.minima.all == 1);
	CHECK(minima_of(&revoked.minima, UINT64_C(0xaabbccddeeff)) == 3);
	CHECK(minima_of(&revoked.minima, UINT64_C(0xaabbccddeefe)) == INT32_MAX);
	CHECK(minima_of(&revoked.minima, UINT64_C(0x240ac4123456)) == 1);
	CHECK(!revoked_holds(&revoked, UINT64_C(0xaabbccddeeff)));
	/* A valid file replaces the list: a device that it does not name may connect again. */
	CHECK(parse_revoked(&revoked, "\n", 1, &wrong) && wrong == 0);
	CHECK(minima_of(&revoked.minima, UINT64_C(0xaabbccddeeff)) == 0 && revoked.minima.count == 0);
	revoked_free(&revoked);
}

static void test_wrong_minimum_takes_nothing_back(void)
{
	static const char *const wrong_lines[] = {">=0 *",	  ">=3",	  ">=03 " MAC, ">=+3 " MAC,
						  ">=2147483648 *", ">= 3 " MAC,  ">3 " MAC,   ">=3 " MAC ":00",
						  ">=3 **",	  "=>3 " MAC,	  ">=x *",     ">=3 fleet-a",
						  "*",		  ">=99999999999999999999 *"};
	char text[128];
	size_t wrong;

	for (size_t at = 0; at < sizeof(wrong_lines) / sizeof(wrong_lines[0]); at++) {
		struct revoked revoked = {0};
		static const char before[] = ">=1 *\n>=5 " MAC "\n";
		CHECK(parse_revoked(&revoked, before, sizeof(before) - 1, &wrong) && wrong == 0);
		int length = snprintf(text, sizeof(text), ">=2 " MAC "\n%s\n>=7 " OTHER "\n", wrong_lines[at]);
		CHECK(parse_revoked(&revoked, text, (size_t)length, &wrong) && wrong == 2);
		CHECK(minima_of(&revoked.minima, UINT64_C(0xaabbccddeeff)) == 5);
		CHECK(minima_of(&revoked.minima, UINT64_C(0x240ac4123456)) == 7);
		CHECK(minima_of(&revoked.minima, 1) == 1);
		revoked_free(&revoked);
	}
}

static void test_long_list_of_minima_is_found_and_one_too_long_is_refused(void)
{
	char line[64], name[MAC_LENGTH + 1];
	char *text = NULL;
	size_t size = 0, wrong;
	struct revoked revoked = {0};
	FILE *out = open_memstream(&text, &size);

	for (uint64_t at = 0; at < REVOKED_MOST; at++) {
		mac_format(at * 7919 % REVOKED_MOST, name);
		fprintf(out, ">=%u %s\n", (unsigned)(at + 1), name);
	}
	fclose(out);
	CHECK(parse_revoked(&revoked, text, size, &wrong) && wrong == 0 && revoked.minima.count == REVOKED_MOST);
	CHECK(minima_of(&revoked.minima, 7919) == 2 && minima_of(&revoked.minima, REVOKED_MOST) == 0);
	text = realloc(text, size + sizeof(line));
	int more = snprintf(line, sizeof(line), ">=9 ff:ff:ff:ff:ff:ff\n");
	memcpy(text + size, line, (size_t)more);
	CHECK(!parse_revoked(&revoked, text, size + (size_t)more, &wrong) && revoked.minima.count == REVOKED_MOST);
	revoked_free(&revoked);
	free(text);
}

static void rewrite(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	fputs(text, file);
	fclose(file);
}

static void test_changed_file_is_due_when_it_has_been_still(void)
{
	char path[] = "/tmp/fleet-watched-XXXXXX";
	struct watched_file file;

	close(mkstemp(path));
	CHECK(watched_open(&file, path));
	watched_look(&file);
	CHECK(watched_exists(&file) && !watched_due(&file));
	rewrite(path, "1");
	CHECK(!watched_due(&file));
	CHECK(watched_due(&file));
	CHECK(!watched_due(&file));
	/* A file that changes all the time is read in the end. */
	rewrite(path, "22");
	CHECK(!watched_due(&file));
	rewrite(path, "333");
	CHECK(!watched_due(&file));
	rewrite(path, "4444");
	CHECK(watched_due(&file));
	CHECK(!watched_due(&file));
	unlink(path);
	CHECK(!watched_due(&file) && watched_due(&file) && !watched_exists(&file) && !watched_due(&file));
	rewrite(path, "");
	CHECK(!watched_due(&file) && watched_due(&file) && watched_exists(&file));
	unlink(path);
	watched_close(&file);
}

static void test_only_regular_files_are_opened(void)
{
	char path[] = "/tmp/fleet-pipe-XXXXXX";

	CHECK(regular_file_open("/nonexistent") == NULL);
	CHECK(regular_file_open("/tmp") == NULL);
	CHECK(regular_file_open("/dev/zero") == NULL);
	close(mkstemp(path));
	unlink(path);
	CHECK(mkfifo(path, 0600) == 0 && regular_file_open(path) == NULL);
	unlink(path);
}

void test_files(void)
{
	test_revoked_are_read_in_any_spelling_and_order();
	test_wrong_line_lets_nobody_in_and_hides_no_other_line();
	test_long_list_is_found_and_one_too_long_is_refused();
	test_minima_are_read_beside_revoked_devices();
	test_wrong_minimum_takes_nothing_back();
	test_long_list_of_minima_is_found_and_one_too_long_is_refused();
	test_changed_file_is_due_when_it_has_been_still();
	test_only_regular_files_are_opened();
}
