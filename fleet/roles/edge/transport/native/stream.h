/* The usual packet of a stream: what may be used without asking Python. Needs neither Python nor a socket.
 *
 * Python decides where a device is, and what its packets look like (uplink_stream.py). It tells `struct usual` the result,
 * and reads there how far the device has come. `usual_take` accepts a datagram only if Python would have accepted it at
 * once, and changes nothing otherwise. */

#ifndef FLEET_NATIVE_STREAM_H
#define FLEET_NATIVE_STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <openssl/evp.h>

#define HEADER_SIZE 16
#define KEY_SIZE 16
#define DOWNLINK_FLAGS 0x80
/* The largest payload of one Opus frame with its first byte (RFC 6716, section 3.4). */
#define LARGEST_PAYLOAD 1276
#define LARGEST_DATAGRAM 2048

/* fleet/wire/packet.py: Header */
struct header {
	uint8_t flags;
	uint16_t length;
	uint32_t ssrc;
	uint32_t timestamp;
	uint32_t sequence;
};

/* fleet/roles/edge/transport/packet_pace.py: PacketPace */
struct pace {
	double due;
	double step;
	double most;
};

/* What the next packet of a stream has to look like: fleet/roles/edge/transport/datagrams.py: Expected */
struct usual {
	bool on;
	struct sockaddr_in address;
	uint8_t toc;
	uint32_t newest;
	double live_seconds;
	double last;
	double last_but_one;
	struct pace pace;
	struct pace allowance;
	uint32_t highest;
};

/* False if the datagram is too short, has another type, or its length field is wrong. */
bool header_read(struct header *out, const uint8_t *datagram, size_t size);

/* AES-128-CTR with the header as initial counter block; `out` has room for `size` bytes. */
EVP_CIPHER_CTX *cipher_new(const uint8_t key[KEY_SIZE]);
bool cipher_run(EVP_CIPHER_CTX *cipher, const uint8_t header[HEADER_SIZE], const uint8_t *in, size_t size, uint8_t *out);

/* Writes a downlink datagram of HEADER_SIZE + size bytes to `out`. */
bool packet_seal(EVP_CIPHER_CTX *cipher, uint32_t ssrc, uint32_t timestamp, uint32_t sequence, const uint8_t *payload,
		 size_t size, uint8_t *out);

/* Whether a datagram is the usual next one; then its payload is in `payload` (header->length bytes). Otherwise the stream
 * is switched off until Python has handled the datagram. */
bool usual_take(struct usual *usual, EVP_CIPHER_CTX *cipher, const struct header *header, const uint8_t *datagram,
		const struct sockaddr_in *from, double now, uint8_t payload[LARGEST_PAYLOAD]);

#endif
