"""The words of admission: policies, verdicts and reasons. The decision is one step in Redis (`fleet_boot`)."""

from typing import Literal

Policy = Literal["open", "first", "code", "closed"]
NoPlace = Literal["no place", "no place for its address"]
"""The MAC is unknown, and the number of such MACs has reached its limit: of all, or of those of its address."""
Verdict = Literal["admitted", "asked", "refused", NoPlace]
"""`asked`: the device has to be activated first."""
PinMethod = Literal["first", "kept", "code", "mac", "key"]
"""How a MAC got its owner. `first`: the first Client-Id that asked. `kept`: it was connected before owners existed.
`code`: by its activation code or an accepted claim. `mac`: an operator named the MAC, then the first Client-Id that
asked. `key`: by a burnt-in key."""
