/* The broker's headers, and its result codes, log levels and late event that the plugin uses. These are part of
 * Mosquitto's ABI, but Debian's mosquitto-dev 2.0 ships them in no header; own names do not clash with those of 2.1. */
#ifndef FLEET_BROKER_CODES_H
#define FLEET_BROKER_CODES_H

#if __has_include(<mosquitto/broker.h>) /* 2.1, which warns of the old names */
#include <mosquitto.h>
#else
#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>
#endif

enum { BROKER_SUCCESS = 0, BROKER_NOMEM = 1, BROKER_INVAL = 3, BROKER_AUTH = 11, BROKER_ACL_DENIED = 12, BROKER_KEEPALIVE = 19 };
enum { LOG_LEVEL_NOTICE = 1 << 1, LOG_LEVEL_WARNING = 1 << 2, LOG_LEVEL_ERROR = 1 << 3 };

/* Mosquitto 2.1 raises it instead of DISCONNECT for a session that outlives its connection; 2.0 refuses to know it. */
enum { EVENT_CLIENT_OFFLINE = 28 };

#endif
