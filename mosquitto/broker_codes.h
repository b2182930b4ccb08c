/* The broker's headers, and the result codes, log levels and the newest event that the plugin uses. They are part of
 * Mosquitto's ABI, but no header of Debian's mosquitto-dev 2.0 has them. The names differ from those in the headers of
 * 2.1. */
#ifndef FLEET_BROKER_CODES_H
#define FLEET_BROKER_CODES_H

#if __has_include(<mosquitto/broker.h>) /* 2.1, where the old header names are deprecated */
#include <mosquitto.h>
#else
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#endif

enum { BROKER_SUCCESS = 0, BROKER_NOMEM = 1, BROKER_INVAL = 3, BROKER_AUTH = 11, BROKER_ACL_DENIED = 12, BROKER_KEEPALIVE = 19 };
enum { LOG_LEVEL_NOTICE = 1 << 1, LOG_LEVEL_WARNING = 1 << 2, LOG_LEVEL_ERROR = 1 << 3 };

/* Mosquitto 2.1 raises it instead of DISCONNECT for a session that outlives its connection; 2.0 does not have it. */
enum { EVENT_CLIENT_OFFLINE = 28 };

#endif
