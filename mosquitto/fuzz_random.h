/* Feeds fuzz.c with inputs of a generator, the same ones for the same seed. For machines without clang; libFuzzer finds
 * more. A fuzz_random.c includes this file, has the generator, and calls fuzz_random. */

#ifndef FLEET_FUZZ_RANDOM_H
#define FLEET_FUZZ_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static uint64_t random_state;

/* splitmix64 */
static uint64_t below(uint64_t limit)
{
	uint64_t mixed = random_state += UINT64_C(0x9E3779B97F4A7C15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
	return (mixed ^ mixed >> 31) % limit;
}

/* Runs a program with the arguments ROUNDS SEED. The generator writes an input into the buffer and returns its size. */
static int fuzz_random(int count, char **arguments, size_t (*generate)(unsigned char *), unsigned char *input)
{
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 100000;

	random_state = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
	for (unsigned long round = 0; round < rounds; round++) {
		/* On the heap and of the exact length, so that AddressSanitizer sees a read past the end. */
		size_t size = generate(input);
		unsigned char *copy = malloc(size);
		if (!copy)
			return EXIT_FAILURE;
		memcpy(copy, input, size);
		LLVMFuzzerTestOneInput(copy, size);
		free(copy);
	}
	printf("%lu inputs, every promise kept\n", rounds);
	return EXIT_SUCCESS;
}

#endif
