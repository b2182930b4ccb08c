#include "revoked.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "topics.h"

static int compare(const void *one, const void *two)
{
	uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)two;

	return (left > right) - (left < right);
}

static bool add(struct revoked *revoked, uint64_t mac)
{
	/* Room doubles at each power of two. */
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

/* Makes the first word of a line a canonical MAC where it is one in another spelling. Returns it, or NULL when the line
 * says nothing. */
static const char *first_word(char *line)
{
	char *word = line + strspn(line, " \t\r\n");
	size_t length = strcspn(word, " \t\r\n");

	if (length == 0 || word[0] == '#')
		return NULL;
	word[length] = '\0';
	for (char *letter = word; *letter; letter++)
		*letter = (char)(*letter == '-' ? ':' : tolower((unsigned char)*letter));
	return word;
}

/* Returns false when there is no memory, or no end. */
static bool parse_lines(struct revoked *fresh, FILE *file, size_t *wrong)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	uint64_t mac;
	bool good = true;

	*wrong = 0;
	for (size_t number = 1; good && (length = getline(&line, &room, file)) >= 0; number++) {
		const char *word = first_word(line);
		if (word && mac_parse(word, &mac))
			good = fresh->count < REVOKED_MOST && add(fresh, mac);
		else if ((word || memchr(line, '\0', (size_t)length)) && *wrong == 0)
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
	if (!good) {
		revoked_free(&fresh);
		return false;
	}
	sort(&fresh);
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
	*revoked = (struct revoked){0};
}
