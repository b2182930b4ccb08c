/* fuzz_random ROUNDS SEED: inputs for fuzz.c: streams of packets, most of them genuine, some of them damaged. An input is
 * one datagram at least. */

#include "fuzz_random.h"
#include "stream.h"

#define MOST_PACKETS 6

static const uint8_t key[KEY_SIZE] = "fuzzed audio key";
static EVP_CIPHER_CTX *cipher;

static size_t length_of_payload(void)
{
	static const size_t edges[] = {0, 1, LARGEST_PAYLOAD, LARGEST_PAYLOAD + 1, LARGEST_DATAGRAM - HEADER_SIZE};

	return below(32) ? 1 + below(40) : edges[below(sizeof(edges) / sizeof(edges[0]))];
}

static size_t write_record(unsigned char *out, uint8_t toc, uint32_t sequence)
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

static size_t generate(unsigned char *out)
{
	size_t size = 1;
	uint32_t sequence;

	out[0] = (unsigned char)below(256);
	sequence = out[0] & 1 ? UINT32_MAX - 2 : 0;
	for (uint64_t left = 1 + below(MOST_PACKETS); left > 0; left--) {
		sequence += below(8) ? 1 : (uint32_t)below(4);
		size += write_record(out + size, out[0] & 0xfc, sequence);
	}
	return size;
}

int main(int count, char **arguments)
{
	static unsigned char input[1 + MOST_PACKETS * (LARGEST_DATAGRAM + 3)];
	int code = EXIT_FAILURE;

	cipher = cipher_new(key);
	if (cipher)
		code = fuzz_random(count, arguments, generate, input);
	EVP_CIPHER_CTX_free(cipher);
	return code;
}
