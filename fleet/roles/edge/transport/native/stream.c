#include "stream.h"

#include <string.h>

static uint32_t read32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void write32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

bool header_read(struct header *out, const uint8_t *datagram, size_t size)
{
	if (size < HEADER_SIZE || datagram[0] != 1)
		return false;
	out->flags = datagram[1];
	out->length = (uint16_t)(datagram[2] << 8 | datagram[3]);
	out->ssrc = read32(datagram + 4);
	out->timestamp = read32(datagram + 8);
	out->sequence = read32(datagram + 12);
	return out->length == size - HEADER_SIZE;
}

EVP_CIPHER_CTX *cipher_new(const uint8_t key[KEY_SIZE])
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();

	if (cipher && EVP_EncryptInit_ex(cipher, EVP_aes_128_ctr(), NULL, key, NULL) == 1)
		return cipher;
	EVP_CIPHER_CTX_free(cipher);
	return NULL;
}

bool cipher_run(EVP_CIPHER_CTX *cipher, const uint8_t header[HEADER_SIZE], const uint8_t *in, size_t size, uint8_t *out)
{
	int written = 0;

	if (size > LARGEST_DATAGRAM || EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, header) != 1)
		return false;
	return EVP_EncryptUpdate(cipher, out, &written, in, (int)size) == 1 && (size_t)written == size;
}

bool packet_seal(EVP_CIPHER_CTX *cipher, uint32_t ssrc, uint32_t timestamp, uint32_t sequence, const uint8_t *payload,
		 size_t size, uint8_t *out)
{
	if (size > LARGEST_DATAGRAM - HEADER_SIZE)
		return false;
	out[0] = 1;
	out[1] = DOWNLINK_FLAGS;
	out[2] = (uint8_t)(size >> 8);
	out[3] = (uint8_t)size;
	write32(out + 4, ssrc);
	write32(out + 8, timestamp);
	write32(out + 12, sequence);
	return cipher_run(cipher, out, payload, size, out + HEADER_SIZE);
}

static bool pace_allows(const struct pace *pace, double now)
{
	return pace->due - now <= pace->most;
}

static void pace_add(struct pace *pace, double now)
{
	pace->due = (pace->due > now ? pace->due : now) + pace->step;
}

/* What can be seen without the key. */
static bool looks_usual(const struct usual *usual, const struct header *header, const struct sockaddr_in *from, double now)
{
	return header->flags == 0 && usual->newest < UINT32_MAX && header->sequence == usual->newest + 1 &&
	       from->sin_family == AF_INET && from->sin_port == usual->address.sin_port &&
	       from->sin_addr.s_addr == usual->address.sin_addr.s_addr && header->length > 0 &&
	       header->length <= LARGEST_PAYLOAD && header->sequence <= usual->highest &&
	       now - usual->last_but_one <= usual->live_seconds && pace_allows(&usual->pace, now) &&
	       pace_allows(&usual->allowance, now);
}

bool usual_take(struct usual *usual, EVP_CIPHER_CTX *cipher, const struct header *header, const uint8_t *datagram,
		const struct sockaddr_in *from, double now, uint8_t payload[LARGEST_PAYLOAD])
{
	if (!usual->on)
		return false;
	usual->on = looks_usual(usual, header, from, now) &&
		    cipher_run(cipher, datagram, datagram + HEADER_SIZE, header->length, payload) && payload[0] == usual->toc;
	if (!usual->on)
		return false;
	usual->newest = header->sequence;
	usual->last_but_one = usual->last;
	usual->last = now;
	pace_add(&usual->pace, now);
	pace_add(&usual->allowance, now);
	return true;
}
