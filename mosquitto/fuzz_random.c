/* fuzz_random ROUNDS SEED: inputs for fuzz.c, made of pieces of topics, names and files. */

#include "fuzz_random.h"

#define LONGEST 2048
#define PIECE(text) {text, sizeof(text) - 1}

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

	return fuzz_random(count, arguments, generate, input);
}
