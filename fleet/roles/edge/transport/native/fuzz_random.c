/* fuzz_random ROUNDS SEED: feeds fuzz.c with inputs of a generator, the same ones for the same seed: streams of packets, most
 * of them genuine, some of them damaged. An input is one datagram at least. For machines without clang. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define MOST_PACKETS 6

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const uint8_t key[KEY_SIZE] = "fuzzed audio key";
static uint64_t state;

/* splitmix64 */
static uint64_t below(uint64_t limit)
{
	uint64_t mixed = state += UINT64_C(0x9E3779B97F4A7C15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
	return (mixed ^ mixed >> 31) % limit;
}

static size_t length_of_payload(void)
{
	static const size_t edges[] = {0, 1, LARGEST_PAYLOAD, LARGEST_PAYLOAD + 1, LARGEST_DATAGRAM - HEADER_SIZE};

	return below(32) ? 1 + below(40) : edges[below(sizeof(edges) / sizeof(edges[0]))];
}

static size_t write_record(unsigned char *out, EVP_CIPHER_CTX *cipher, uint8_t toc, uint32_t sequence)
{
	uint8_t payload[LARGEST_DATAGRAM] = {0};
	size_t size = length_of_payload(), total = HEADER_SIZE + size;

	for (size_t at = 0; at < 24; at++)
		payload[at] = (uint8_t)below(256);
	payload[0] = toc;
	out[0] = (unsigned char)(32 | (below(8) ? 0 : below(32)));
	if (!packet_seal(cipher, 1, 2, sequence, payload, size, out + 3))
		abort();
	out[4] = below(16) ? 0 : DOWNLINK_FLAGS;
	/* The flags are part of the counter block. */
	if (!cipher_run(cipher, out + 3, payload, size, out + 3 + HEADER_SIZE))
		abort();
	if (below(6) == 0)
		out[3 + below(total)] ^= (unsigned char)(1 << below(8));
	if (below(16) == 0)
		total -= below(total + 1);
	out[1] = (unsigned char)(total >> 8);
	out[2] = (unsigned char)total;
	return 3 + total;
}

static size_t generate(unsigned char *out, EVP_CIPHER_CTX *cipher)
{
	size_t size = 1;
	uint32_t sequence;

	out[0] = (unsigned char)below(256);
	sequence = out[0] & 1 ? UINT32_MAX - 2 : 0;
	for (uint64_t left = 1 + below(MOST_PACKETS); left > 0; left--) {
		sequence += below(8) ? 1 : (uint32_t)below(4);
		size += write_record(out + size, cipher, out[0] & 0xfc, sequence);
	}
	return size;
}

int main(int count, char **arguments)
{
	static unsigned char input[1 + MOST_PACKETS * (LARGEST_DATAGRAM + 3)];
	unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 100000;
	EVP_CIPHER_CTX *cipher = cipher_new(key);

	state = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
	if (!cipher)
		return EXIT_FAILURE;
	for (unsigned long round = 0; round < rounds; round++) {
		/* On the heap and of the exact length, so that AddressSanitizer sees a read past the end. */
		size_t size = generate(input, cipher);
		unsigned char *copy = malloc(size);
		if (!copy)
			return EXIT_FAILURE;
		memcpy(copy, input, size);
		LLVMFuzzerTestOneInput(copy, size);
		free(copy);
	}
	EVP_CIPHER_CTX_free(cipher);
	printf("%lu inputs, every promise kept\n", rounds);
	return EXIT_SUCCESS;
}
