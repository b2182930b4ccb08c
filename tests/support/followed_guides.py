"""The guides that `tests/containers/test_guides.py` follows: the headings above their blocks for a shell, in order."""

START, CHECK, CONNECT = "1. Start it", "2. Check it", "3. Connect a real device"
OWN_MODELS, KEEP_RUNNING = "5. Use your own models", "6. Keep it running"
INSTALL, KEY, REDIS = "2. Install fleet on each machine", "3. Create the key, once", "4. Start Redis"
BROKER, SETTINGS, ROLES = "5. Start the broker", "6. Write the settings", "8. Start the roles"
EXAMINE = "9. Check"

QUICK_START = "docs/operating/quick-start.md"
PRODUCTION = "docs/operating/production.md"
HEADINGS = {
    QUICK_START: (START, CHECK, CONNECT, OWN_MODELS, *[KEEP_RUNNING] * 3),
    PRODUCTION: (INSTALL, KEY, REDIS, BROKER, *[SETTINGS] * 2, *[ROLES] * 4, *[EXAMINE] * 2),
}
