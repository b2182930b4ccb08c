/* fuzz_random ROUNDS SEED: feeds fuzz.c with inputs of a generator, the same ones for the same seed. For machines
 * without clang; libFuzzer finds more. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 2048
#define PIECE(text) {text, sizeof(text) - 1}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const struct {
	const char *text;
	size_t length;
} pieces[] = {
	PIECE("fleet/up/"),   PIECE("fleet/down/"), PIECE("fleet/shard/"),
	PIECE("fleet/"),      PIECE("/lost"),	    PIECE("132/"),
	PIECE("aa:bb:"),      PIECE("$share/g/"),   PIECE("aa:bb:cc:dd:ee:ff"),
	PIECE("$SYS/"),	      PIECE("#"),	    PIECE("24:0a:c4:12:34:56"),
	PIECE("device.k1"),   PIECE("service.k1"),  PIECE("k1 0123456789abcdef"),
	PIECE("fleet-"),      PIECE("\0"),	    PIECE("\0"),
	PIECE("\n"),	      PIECE("\n"),	    PIECE("AA-BB-CC-DD-EE-FF stolen"),
	PIECE(" "),	      PIECE("# "),	    PIECE("k2\tключ-длинный-ещё1\r\n"),
	PIECE("fleet/broker/boot"), PIECE("device.k1.first.3"), PIECE(".open.0"),
	PIECE(".code."),      PIECE("2147483648"),  PIECE(">=1 *"),
	PIECE(">=3 "),	      PIECE(">="),	    PIECE("device.k1.closed.2147483647"),
};

static uint64_t state;

/* splitmix64 */
static uint64_t below(uint64_t limit)
{
	uint64_t mixed = state += UINT64_C(0x9E3779B97F4A7C15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
	return (mixed ^ mixed >> 31) % limit;
}

static size_t generate(unsigned char *out)
{
	size_t size = 1;

	out[0] = (unsigned char)below(4);
	for (uint64_t left = below(12); left > 0; left--) {
		size_t piece = below(sizeof(pieces) / sizeof(pieces[0]));
		memcpy(out + size, pieces[piece].text, pieces[piece].length);
		size += pieces[piece].length;
	}
	/* Now and then a long run, past the limits of lines and ids. */
	if (below(16) == 0) {
		size_t run = below(LONGEST / 2);
		memset(out + size, "x:\n0"[below(4)], run);
		size += run;
	}
	for (uint64_t left = below(4); left > 0 && size > 1; left--)
		out[1 + below(size - 1)] = (unsigned char)below(256);
	return size;
}

int main(int count, char **arguments)
{
	static unsigned char input[LONGEST];
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 100000;

	state = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
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
