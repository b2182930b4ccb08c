/* The broker's result codes, log levels and late event that the plugin uses. They are part of Mosquitto's ABI, but
 * Debian's mosquitto-dev ships them in no header; own names do not clash with the headers that have them. */
#ifndef FLEET_BROKER_CODES_H
#define FLEET_BROKER_CODES_H

enum { BROKER_SUCCESS = 0, BROKER_NOMEM = 1, BROKER_INVAL = 3, BROKER_AUTH = 11, BROKER_ACL_DENIED = 12, BROKER_KEEPALIVE = 19 };
enum { LOG_LEVEL_NOTICE = 1 << 1, LOG_LEVEL_WARNING = 1 << 2, LOG_LEVEL_ERROR = 1 << 3 };

/* Mosquitto 2.1 raises it instead of DISCONNECT for a session that outlives its connection; 2.0 refuses to know it. */
enum { EVENT_CLIENT_OFFLINE = 28 };

#endif
