/* Runs one fuzz input: datagrams for one stream, beside a plain account of what may be taken. Called by libFuzzer or
 * fuzz_random.c. A violated property aborts.
 *
 * The first byte is the stream's flags and TOC; then each record is: flags of the sender and clock, two bytes of length,
 * the datagram. */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define MUST(claim)                                                                                                    \
	do {                                                                                                           \
		if (!(claim)) {                                                                                        \
			fprintf(stderr, "broken promise: %s\n", #claim);                                               \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static const uint8_t key[KEY_SIZE] = "fuzzed audio key";

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_header(const struct header *header, const uint8_t *datagram, size_t size)
{
	uint32_t number;

	MUST(datagram[0] == 1 && size == HEADER_SIZE + (size_t)header->length);
	memcpy(&number, datagram + 4, sizeof(number));
	MUST(ntohl(number) == header->ssrc);
	memcpy(&number, datagram + 12, sizeof(number));
	MUST(ntohl(number) == header->sequence);
}

static void check_seal(EVP_CIPHER_CTX *cipher, const uint8_t *payload, size_t size)
{
	uint8_t *sealed = malloc(HEADER_SIZE + size), *opened = malloc(size + 1);
	struct header header;

	if (!sealed || !opened)
		abort();
	MUST(packet_seal(cipher, 7, 8, 9, payload, size, sealed) == (size <= LARGEST_DATAGRAM - HEADER_SIZE));
	if (size <= LARGEST_DATAGRAM - HEADER_SIZE) {
		MUST(header_read(&header, sealed, HEADER_SIZE + size));
		MUST(header.flags == DOWNLINK_FLAGS && header.ssrc == 7 && header.timestamp == 8 && header.sequence == 9);
		MUST(cipher_run(cipher, sealed, sealed + HEADER_SIZE, size, opened));
		MUST(memcmp(opened, payload, size) == 0);
	}
	free(sealed);
	free(opened);
}

static void check_pace(const struct pace *before, const struct pace *after, double now)
{
	MUST(before->due <= now + before->most);
	MUST(after->due >= now + after->step && after->due >= before->due + after->step);
	MUST(after->due <= now + after->most + after->step);
}

static void check_datagram(struct usual *usual, EVP_CIPHER_CTX *cipher, const uint8_t *datagram, size_t size,
			   const struct sockaddr_in *from, double now)
{
	struct usual before = *usual;
	struct header header;
	/* Of the exact size, so that AddressSanitizer sees a write past the end. */
	uint8_t *payload = malloc(LARGEST_PAYLOAD);

	if (!payload)
		abort();
	if (header_read(&header, datagram, size)) {
		check_header(&header, datagram, size);
		bool taken = usual_take(usual, cipher, &header, datagram, from, now, payload);
		MUST(usual->on == taken);
		if (taken) {
			MUST(before.on && header.flags == 0 && header.sequence == before.newest + 1 && header.sequence);
			MUST(from->sin_port == before.address.sin_port);
			MUST(from->sin_addr.s_addr == before.address.sin_addr.s_addr);
			MUST(header.length >= 1 && header.length <= LARGEST_PAYLOAD && payload[0] == before.toc);
			MUST(now - before.last_but_one <= before.live_seconds);
			MUST(usual->newest == header.sequence && usual->last == now);
			MUST(usual->last_but_one == before.last);
			MUST(header.sequence <= before.highest);
			check_pace(&before.pace, &usual->pace, now);
			check_pace(&before.allowance, &usual->allowance, now);
			check_seal(cipher, payload, header.length);
		} else {
			MUST(usual->newest == before.newest && usual->last == before.last);
			MUST(usual->pace.due == before.pace.due && usual->allowance.due == before.allowance.due);
		}
	}
	free(payload);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static EVP_CIPHER_CTX *cipher;
	struct usual usual = {.on = true, .live_seconds = 0.6, .pace = {0, 0.05, 0.2}, .allowance = {0, 0.025, 0.15}};
	double now = 0;

	if (!cipher && !(cipher = cipher_new(key)))
		abort();
	if (size < 1)
		return 0;
	usual.toc = data[0] & 0xfc;
	usual.newest = data[0] & 1 ? UINT32_MAX - 2 : 0;
	usual.highest = data[0] & 2 ? UINT32_MAX : 5;
	usual.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = 1, .sin_addr = {2}};
	data++;
	for (size--; size >= 3;) {
		struct sockaddr_in from = usual.address;
		uint8_t kind = data[0];
		size_t length = (size_t)(data[1] << 8 | data[2]) % (LARGEST_DATAGRAM + 1);
		data += 3;
		size -= 3;
		length = length < size ? length : size;
		from.sin_port = (in_port_t)(from.sin_port + (kind & 1));
		from.sin_addr.s_addr += kind >> 1 & 1;
		now += (kind >> 2 & 7) * 0.1;
		/* Python would look at the rest, and switch the stream on again. */
		usual.on = usual.on || kind & 32;
		uint8_t *datagram = malloc(length ? length : 1);
		if (!datagram)
			abort();
		memcpy(datagram, data, length);
		check_datagram(&usual, cipher, datagram, length, &from, now);
		free(datagram);
		data += length;
		size -= length;
	}
	check_seal(cipher, data, size);
	return 0;
}
