#include "revoked.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "identity.h"
#include "topics.h"

static int compare(const void *one, const void *two)
{
	uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)two;

	return (left > right) - (left < right);
}

static bool add(struct revoked *revoked, uint64_t mac)
{
	/* The array is full at each power of two; then its size doubles. */
	if ((revoked->count & (revoked->count - 1)) == 0) {
		size_t room = revoked->count ? revoked->count * 2 : 1;
		uint64_t *bigger = realloc(revoked->macs, room * sizeof(*bigger));
		if (!bigger)
			return false;
		revoked->macs = bigger;
	}
	revoked->macs[revoked->count++] = mac;
	return true;
}

static void sort(struct revoked *revoked)
{
	size_t kept = 0;

	if (revoked->count == 0)
		return;
	qsort(revoked->macs, revoked->count, sizeof(*revoked->macs), compare);
	for (size_t at = 1; at < revoked->count; at++)
		if (revoked->macs[at] != revoked->macs[kept])
			revoked->macs[++kept] = revoked->macs[at];
	revoked->count = kept + 1;
}

/* Returns the first word of a text and moves `text` behind it. Returns NULL if there is none. */
static char *next_word(char **text)
{
	char *word = *text + strspn(*text, " \t\r\n");
	size_t length = strcspn(word, " \t\r\n");

	if (length == 0)
		return NULL;
	*text = word + length + (word[length] != '\0');
	word[length] = '\0';
	return word;
}

static bool read_mac(char *word, uint64_t *mac)
{
	for (char *letter = word; *letter; letter++)
		*letter = (char)(*letter == '-' ? ':' : tolower((unsigned char)*letter));
	return mac_parse(word, mac);
}

/* Adds the entry of a line. Returns false if there is no memory or the list is too long; sets *bad if the line is
 * invalid. */
static bool add_line(struct revoked *fresh, char *line, bool *bad)
{
	char *word = next_word(&line);
	char *whom = word && word[0] == '>' && word[1] == '=' ? next_word(&line) : NULL;
	uint32_t generation;
	uint64_t mac;

	*bad = false;
	if (!word || word[0] == '#')
		return true;
	if (read_mac(word, &mac))
		return fresh->count < REVOKED_MOST && add(fresh, mac);
	if (whom && generation_parse(word + 2, &generation) && generation > 0) {
		if (read_mac(whom, &mac))
			return fresh->minima.count < REVOKED_MOST && minima_add(&fresh->minima, mac, generation);
		if (strcmp(whom, "*") == 0) {
			fresh->minima.all = generation > fresh->minima.all ? generation : fresh->minima.all;
			return true;
		}
	}
	*bad = true;
	return true;
}

/* Returns false if there is no memory, the list is too long, or the file cannot be read to its end. */
static bool parse_lines(struct revoked *fresh, FILE *file, size_t *wrong)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	bool good = true, bad;

	*wrong = 0;
	for (size_t number = 1; good && (length = getline(&line, &room, file)) >= 0; number++) {
		/* The text behind a zero byte is not read, so a line with one counts as invalid. */
		bool cut = memchr(line, '\0', (size_t)length) != NULL;
		good = add_line(fresh, line, &bad);
		if ((bad || cut) && *wrong == 0)
			*wrong = number;
	}
	free(line);
	return good && !ferror(file);
}

bool revoked_parse(struct revoked *revoked, FILE *file, size_t *wrong)
{
	struct revoked fresh = {0};
	bool good = parse_lines(&fresh, file, wrong);

	for (size_t at = 0; good && *wrong && at < revoked->count; at++)
		good = add(&fresh, revoked->macs[at]);
	if (good && *wrong)
		good = minima_join(&fresh.minima, &revoked->minima);
	if (!good) {
		revoked_free(&fresh);
		return false;
	}
	sort(&fresh);
	minima_sort(&fresh.minima);
	revoked_free(revoked);
	*revoked = fresh;
	return true;
}

bool revoked_holds(const struct revoked *revoked, uint64_t mac)
{
	return revoked->count && bsearch(&mac, revoked->macs, revoked->count, sizeof(mac), compare);
}

void revoked_free(struct revoked *revoked)
{
	free(revoked->macs);
	minima_free(&revoked->minima);
	*revoked = (struct revoked){0};
}
