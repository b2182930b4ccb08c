/* The Python module fleet_native: the socket's batches, and the channels of its streams. Uses the limited API, so one build
 * serves every Python from 3.11 on. Everything is called with the interpreter's lock; no call blocks. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "stream.h"

/* Raise it with every change of what Python calls or gets: fleet/roles/edge/transport/datagrams.py has the same. */
#define INTERFACE 2
/* Datagrams a system call. */
#define BATCH 64
#define HOST_SIZE 16
#define USUAL_PARTS 4

enum count { PORT_ZERO, RECEIVE_FAILED, SEND_FULL, SEND_FAILED, COUNTS };

typedef struct {
	PyObject_HEAD int fd;
	/* Channels by ssrc. */
	PyObject *channels;
	unsigned long counts[COUNTS];
	struct mmsghdr in[BATCH];
	struct iovec in_parts[BATCH];
	struct sockaddr_in from[BATCH];
	uint8_t received[BATCH][LARGEST_DATAGRAM];
	struct mmsghdr out[BATCH];
	struct iovec out_parts[BATCH];
	struct sockaddr_in to[BATCH];
	/* What is sent is kept until the kernel has it: an object, or a packet that was sealed here. */
	PyObject *sent[BATCH];
	uint8_t sealed[BATCH][LARGEST_DATAGRAM];
	unsigned waiting;
} Plane;

typedef struct {
	PyObject_HEAD Plane *plane;
	uint32_t ssrc;
	EVP_CIPHER_CTX *cipher;
	struct usual usual;
	/* The newest number that Python knows. */
	uint32_t known;
	/* Where the device is; the family is 0 until that is known. */
	struct sockaddr_in home;
	/* Of the packets that are sent. */
	uint32_t frame_ms;
	uint32_t sent;
} Channel;

typedef struct {
	PyObject *channel_type;
} State;

static struct PyModuleDef module;

static PyObject *refuse(const char *reason)
{
	PyErr_SetString(PyExc_ValueError, reason);
	return NULL;
}

/* (host, port), as `socket.recvfrom` returns it. */
static bool read_address(PyObject *address, struct sockaddr_in *out)
{
	const char *host;
	unsigned long port;

	if (!PyTuple_Check(address) || PyTuple_Size(address) != 2)
		return refuse("an address is a tuple of host and port") != NULL;
	host = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(address, 0), NULL);
	if (!host)
		return false;
	port = PyLong_AsUnsignedLong(PyTuple_GetItem(address, 1));
	if (PyErr_Occurred())
		return false;
	memset(out, 0, sizeof(*out));
	out->sin_family = AF_INET;
	out->sin_port = htons((uint16_t)port);
	if (port > UINT16_MAX || inet_pton(AF_INET, host, &out->sin_addr) != 1)
		return refuse("no IPv4 address") != NULL;
	return true;
}

/* --- Channel --- */

static void flush(Plane *self)
{
	for (unsigned at = 0; at < self->waiting;) {
		int count = sendmmsg(self->fd, self->out + at, self->waiting - at, MSG_DONTWAIT);
		if (count < 0) {
			/* As with sendto: this datagram is dropped, the next one is tried. */
			self->counts[errno == EAGAIN || errno == EWOULDBLOCK ? SEND_FULL : SEND_FAILED]++;
			count = 1;
		}
		at += (unsigned)count;
	}
	for (unsigned at = 0; at < self->waiting; at++)
		Py_CLEAR(self->sent[at]);
	self->waiting = 0;
}

static PyObject *channel_open(PyObject *object, PyObject *datagram)
{
	Channel *self = (Channel *)object;
	uint8_t payload[LARGEST_DATAGRAM];
	char *bytes;
	Py_ssize_t size;

	if (PyBytes_AsStringAndSize(datagram, &bytes, &size) < 0)
		return NULL;
	if (size < HEADER_SIZE || size > LARGEST_DATAGRAM)
		return refuse("no datagram that can be opened");
	size -= HEADER_SIZE;
	if (!cipher_run(self->cipher, (uint8_t *)bytes, (uint8_t *)bytes + HEADER_SIZE, (size_t)size, payload))
		return refuse("the cipher failed");
	return PyBytes_FromStringAndSize((char *)payload, size);
}

static PyObject *channel_move(PyObject *object, PyObject *address)
{
	struct sockaddr_in home;

	if (!read_address(address, &home))
		return NULL;
	((Channel *)object)->home = home;
	Py_RETURN_NONE;
}

static PyObject *channel_send(PyObject *object, PyObject *payload)
{
	Channel *self = (Channel *)object;
	Plane *plane = self->plane;
	uint32_t sequence = self->sent + 1;
	char *bytes;
	Py_ssize_t size;

	if (PyBytes_AsStringAndSize(payload, &bytes, &size) < 0)
		return NULL;
	if (!self->home.sin_family)
		return Py_NewRef(Py_False);
	if (!sequence)
		return refuse("no number is left");
	if (plane->waiting == BATCH)
		flush(plane);
	if (!packet_seal(self->cipher, self->ssrc, sequence * self->frame_ms, sequence, (uint8_t *)bytes, (size_t)size,
			 plane->sealed[plane->waiting]))
		return refuse("the payload is too long, or the cipher failed");
	self->sent = sequence;
	plane->to[plane->waiting] = self->home;
	plane->out_parts[plane->waiting] = (struct iovec){plane->sealed[plane->waiting], (size_t)size + HEADER_SIZE};
	plane->waiting++;
	return Py_NewRef(Py_True);
}

static PyObject *channel_sent(PyObject *object, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(((Channel *)object)->sent);
}

/* Takes the tuple `Expected` of datagrams.py. */
static PyObject *channel_expect(PyObject *object, PyObject *expected)
{
	Channel *self = (Channel *)object;
	struct usual next = {0};
	PyObject *address;
	unsigned char toc;
	unsigned int newest, highest;

	if (!PyTuple_Check(expected))
		return refuse("expect takes a tuple");
	if (!PyArg_ParseTuple(expected, "ObIddd(ddd)(ddd)I", &address, &toc, &newest, &next.last, &next.last_but_one,
			      &next.live_seconds, &next.pace.due, &next.pace.step, &next.pace.most, &next.allowance.due,
			      &next.allowance.step, &next.allowance.most, &highest) ||
	    !read_address(address, &next.address))
		return NULL;
	/* Packets of several frames have lengths that only Python checks. */
	next.on = (toc & 3) == 0;
	next.toc = toc;
	next.newest = self->known = newest;
	next.highest = highest;
	self->usual = next;
	Py_RETURN_NONE;
}

static PyObject *channel_progress(PyObject *object, PyObject *unused)
{
	Channel *self = (Channel *)object;
	struct usual *usual = &self->usual;

	(void)unused;
	if (usual->newest == self->known)
		Py_RETURN_NONE;
	self->known = usual->newest;
	return Py_BuildValue("(kdddd)", (unsigned long)usual->newest, usual->last, usual->last_but_one, usual->pace.due,
			     usual->allowance.due);
}

static PyObject *channel_close(PyObject *object, PyObject *unused)
{
	Channel *self = (Channel *)object;
	PyObject *ssrc = PyLong_FromUnsignedLong(self->ssrc);

	(void)unused;
	self->usual.on = false;
	if (!ssrc)
		return NULL;
	if (self->plane->channels && PyDict_GetItemWithError(self->plane->channels, ssrc) == object)
		PyDict_DelItem(self->plane->channels, ssrc);
	Py_DECREF(ssrc);
	return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *channel_stop(PyObject *object, PyObject *unused)
{
	(void)unused;
	((Channel *)object)->usual.on = false;
	Py_RETURN_NONE;
}

static void channel_dealloc(PyObject *object)
{
	Channel *self = (Channel *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	EVP_CIPHER_CTX_free(self->cipher);
	Py_XDECREF((PyObject *)self->plane);
	release(object);
	Py_DECREF(type);
}

static PyMethodDef channel_methods[] = {
	{"open", channel_open, METH_O, "Return the payload of a datagram."},
	{"move", channel_move, METH_O, "Send to this address from now on."},
	{"send", channel_send, METH_O, "Seal the next packet and send it at the next flush; False if no address is known."},
	{"expect", channel_expect, METH_O, "Say what the next packet looks like that needs no further check."},
	{"progress", channel_progress, METH_NOARGS, "Return how far the stream has come since Python last knew."},
	{"stop", channel_stop, METH_NOARGS, "Admit nothing: every packet needs all checks."},
	{"close", channel_close, METH_NOARGS, "End the stream."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef channel_attributes[] = {
	{"sent", channel_sent, NULL, "Number of packets sent.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot channel_slots[] = {
	{Py_tp_dealloc, channel_dealloc},
	{Py_tp_getset, channel_attributes},
	{Py_tp_methods, channel_methods},
	{0, NULL},
};

static PyType_Spec channel_spec = {"fleet_native.Channel", sizeof(Channel), 0,
				   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, channel_slots};

/* --- Plane --- */

static int plane_init(PyObject *object, PyObject *arguments, PyObject *names)
{
	Plane *self = (Plane *)object;

	if (self->channels || (names && PyDict_Size(names)) || !PyArg_ParseTuple(arguments, "i", &self->fd)) {
		if (!PyErr_Occurred())
			refuse("Plane takes a file descriptor, once");
		return -1;
	}
	self->channels = PyDict_New();
	for (unsigned at = 0; at < BATCH; at++) {
		self->in_parts[at] = (struct iovec){self->received[at], LARGEST_DATAGRAM};
		self->in[at].msg_hdr.msg_iov = &self->in_parts[at];
		self->in[at].msg_hdr.msg_iovlen = 1;
		self->in[at].msg_hdr.msg_name = &self->from[at];
		self->out[at].msg_hdr.msg_iov = &self->out_parts[at];
		self->out[at].msg_hdr.msg_iovlen = 1;
		self->out[at].msg_hdr.msg_name = &self->to[at];
		self->out[at].msg_hdr.msg_namelen = sizeof(self->to[at]);
	}
	return self->channels ? 0 : -1;
}

static PyObject *plane_channel(PyObject *object, PyObject *arguments)
{
	Plane *self = (Plane *)object;
	State *state = PyModule_GetState(PyType_GetModule(Py_TYPE(object)));
	PyTypeObject *type = (PyTypeObject *)state->channel_type;
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	Channel *channel;
	const char *key;
	Py_ssize_t size;
	unsigned int ssrc, frame_ms;
	PyObject *number;

	if (!PyArg_ParseTuple(arguments, "y#II", &key, &size, &ssrc, &frame_ms))
		return NULL;
	if (size != KEY_SIZE || !self->channels)
		return refuse("a key has 16 bytes");
	channel = (Channel *)allocate(type, 0);
	if (!channel)
		return NULL;
	channel->plane = (Plane *)Py_NewRef(object);
	channel->ssrc = ssrc;
	channel->frame_ms = frame_ms;
	channel->cipher = cipher_new((const uint8_t *)key);
	number = PyLong_FromUnsignedLong(ssrc);
	if (!channel->cipher || !number || PyDict_SetItem(self->channels, number, (PyObject *)channel) < 0) {
		if (!PyErr_Occurred())
			PyErr_NoMemory();
		Py_CLEAR(channel);
	}
	Py_XDECREF(number);
	return (PyObject *)channel;
}

/* The tuple `Usual` of datagrams.py; takes the reference to `ssrc`. */
static PyObject *pack_usual(PyObject *ssrc, const struct header *header, const uint8_t *payload)
{
	PyObject *parts[] = {ssrc, PyLong_FromUnsignedLong(header->sequence), PyLong_FromUnsignedLong(header->timestamp),
			     PyBytes_FromStringAndSize((const char *)payload, header->length)};
	PyObject *item = PyTuple_New(USUAL_PARTS);
	bool good = item != NULL;

	for (Py_ssize_t at = 0; at < USUAL_PARTS; at++) {
		good = good && parts[at];
		if (item)
			PyTuple_SetItem(item, at, parts[at]);
		else
			Py_XDECREF(parts[at]);
	}
	if (!good)
		Py_CLEAR(item);
	return item;
}

static PyObject *usual_item(Plane *self, const struct header *header, unsigned at, double now, bool *taken)
{
	uint8_t payload[LARGEST_PAYLOAD];
	PyObject *ssrc = PyLong_FromUnsignedLong(header->ssrc);
	Channel *channel = ssrc ? (Channel *)PyDict_GetItemWithError(self->channels, ssrc) : NULL;

	*taken = channel && usual_take(&channel->usual, channel->cipher, header, self->received[at], &self->from[at], now,
				       payload);
	if (*taken)
		return pack_usual(ssrc, header, payload);
	Py_XDECREF(ssrc);
	return NULL;
}

static bool append(PyObject *list, PyObject *item)
{
	bool good = item && PyList_Append(list, item) == 0;

	Py_XDECREF(item);
	return good;
}

/* Hands over a datagram, or the packet in it; false with an exception. */
static bool hand_over(Plane *self, unsigned at, double now, PyObject *usual, PyObject *others)
{
	size_t size = self->in[at].msg_len;
	struct header header;
	char host[HOST_SIZE] = "";
	bool taken = false;
	PyObject *item;

	if (!self->from[at].sin_port) {
		self->counts[PORT_ZERO]++;
		return true;
	}
	if (header_read(&header, self->received[at], size)) {
		item = usual_item(self, &header, at, now, &taken);
		if (taken)
			return append(usual, item);
		if (PyErr_Occurred())
			return false;
	}
	inet_ntop(AF_INET, &self->from[at].sin_addr, host, sizeof(host));
	return append(others, Py_BuildValue("(y#(si))", (char *)self->received[at], (Py_ssize_t)size, host,
					    (int)ntohs(self->from[at].sin_port)));
}

static bool receive(Plane *self, double now, int left, PyObject *usual, PyObject *others)
{
	while (left > 0) {
		unsigned most = left < BATCH ? (unsigned)left : BATCH;
		for (unsigned at = 0; at < most; at++)
			self->in[at].msg_hdr.msg_namelen = sizeof(self->from[at]);
		int count = recvmmsg(self->fd, self->in, most, MSG_DONTWAIT, NULL);
		if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (count < 0) {
			/* An ICMP error of an earlier send; no packet was read. */
			self->counts[RECEIVE_FAILED]++;
			left--;
			continue;
		}
		for (unsigned at = 0; at < (unsigned)count; at++)
			if (!hand_over(self, at, now, usual, others))
				return false;
		left -= count;
		if ((unsigned)count < most)
			break;
	}
	return true;
}

static PyObject *plane_receive(PyObject *object, PyObject *arguments)
{
	Plane *self = (Plane *)object;
	PyObject *usual = PyList_New(0), *others = PyList_New(0), *batch = NULL;
	double now;
	int left;

	if (!self->channels)
		refuse("closed");
	else if (usual && others && PyArg_ParseTuple(arguments, "di", &now, &left) &&
		 receive(self, now, left, usual, others))
		batch = PyTuple_Pack(2, usual, others);
	Py_XDECREF(usual);
	Py_XDECREF(others);
	return batch;
}

static PyObject *plane_send(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
	Plane *self = (Plane *)object;
	char *bytes;
	Py_ssize_t size;

	if (count != 2)
		return refuse("send takes datagram and address");
	if (self->waiting == BATCH)
		flush(self);
	if (PyBytes_AsStringAndSize(arguments[0], &bytes, &size) < 0 ||
	    !read_address(arguments[1], &self->to[self->waiting]))
		return NULL;
	self->out_parts[self->waiting] = (struct iovec){bytes, (size_t)size};
	self->sent[self->waiting++] = Py_NewRef(arguments[0]);
	Py_RETURN_NONE;
}

static PyObject *plane_flush(PyObject *object, PyObject *unused)
{
	(void)unused;
	flush((Plane *)object);
	Py_RETURN_NONE;
}

static PyObject *plane_counts(PyObject *object, PyObject *unused)
{
	Plane *self = (Plane *)object;
	unsigned long counts[COUNTS], any = 0;

	(void)unused;
	memcpy(counts, self->counts, sizeof(counts));
	memset(self->counts, 0, sizeof(counts));
	for (unsigned at = 0; at < COUNTS; at++)
		any |= counts[at];
	if (!any)
		Py_RETURN_NONE;
	return Py_BuildValue("{sksksksk}", "port_zero", counts[PORT_ZERO], "receive_failed", counts[RECEIVE_FAILED],
			     "send_full", counts[SEND_FULL], "send_failed", counts[SEND_FAILED]);
}

static PyObject *plane_close(PyObject *object, PyObject *unused)
{
	Plane *self = (Plane *)object;

	(void)unused;
	self->fd = -1;
	for (unsigned at = 0; at < self->waiting; at++)
		Py_CLEAR(self->sent[at]);
	self->waiting = 0;
	if (self->channels)
		PyDict_Clear(self->channels);
	Py_RETURN_NONE;
}

static void plane_dealloc(PyObject *object)
{
	Plane *self = (Plane *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	for (unsigned at = 0; at < self->waiting; at++)
		Py_CLEAR(self->sent[at]);
	Py_CLEAR(self->channels);
	release(object);
	Py_DECREF(type);
}

static PyMethodDef plane_methods[] = {
	{"channel", plane_channel, METH_VARARGS, "Return the channel of a key, an ssrc and a frame's length."},
	{"receive", plane_receive, METH_VARARGS, "Return the usual packets and the other datagrams that came, at most so many."},
	{"send", (PyCFunction)(void (*)(void))plane_send, METH_FASTCALL, "Send a datagram at the next flush."},
	{"flush", plane_flush, METH_NOARGS, "Send what waits."},
	{"counts", plane_counts, METH_NOARGS, "Return what was dropped since the last call, None if nothing was."},
	{"close", plane_close, METH_NOARGS, "Forget the socket and all channels."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot plane_slots[] = {
	{Py_tp_init, plane_init},
	{Py_tp_dealloc, plane_dealloc},
	{Py_tp_methods, plane_methods},
	{0, NULL},
};

static PyType_Spec plane_spec = {"fleet_native.Plane", sizeof(Plane), 0, Py_TPFLAGS_DEFAULT, plane_slots};

static int execute(PyObject *made)
{
	State *state = PyModule_GetState(made);
	PyObject *plane = PyType_FromModuleAndSpec(made, &plane_spec, NULL);

	state->channel_type = PyType_FromModuleAndSpec(made, &channel_spec, NULL);
	if (!plane || !state->channel_type || PyModule_AddObjectRef(made, "Plane", plane) < 0)
		return -1;
	Py_DECREF(plane);
	if (PyModule_AddIntConstant(made, "INTERFACE", INTERFACE) < 0)
		return -1;
	return PyModule_AddObjectRef(made, "Channel", state->channel_type);
}

static int traverse(PyObject *made, visitproc visit, void *arg)
{
	State *state = PyModule_GetState(made);

	Py_VISIT(state->channel_type);
	return 0;
}

static int clear(PyObject *made)
{
	State *state = PyModule_GetState(made);

	Py_CLEAR(state->channel_type);
	return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef module = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "fleet_native",
	.m_doc = "UDP in batches, and the audio packets of streams that need no further check.",
	.m_size = sizeof(State),
	.m_slots = module_slots,
	.m_traverse = traverse,
	.m_clear = clear,
};

PyMODINIT_FUNC PyInit_fleet_native(void);

PyMODINIT_FUNC PyInit_fleet_native(void)
{
	return PyModuleDef_Init(&module);
}
