/* Declarations for all unit tests. */
#ifndef FLEET_UNIT_TEST_H
#define FLEET_UNIT_TEST_H

#include <stdio.h>

#define MAC "aa:bb:cc:dd:ee:ff"
#define OTHER "24:0a:c4:12:34:56"
#define KEY "0123456789abcdef"

extern int failures;

#define CHECK(claim)                                                                                                   \
	do {                                                                                                           \
		if (!(claim)) {                                                                                        \
			failures++;                                                                                    \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #claim);                          \
		}                                                                                                      \
	} while (0)

/* The list of revoked devices, and files that change. */
void test_files(void);

#endif
