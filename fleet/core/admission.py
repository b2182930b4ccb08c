"""Who is served, as the operator's policy has it. The decision itself is one step in Redis (`fleet_boot`)."""

from typing import Literal

Policy = Literal["open", "first", "code", "closed"]
NoPlace = Literal["no place", "no place for its address"]
"""Nothing is known of its MAC, and there are already as many such MACs as may be, of all or of those of its address."""
Verdict = Literal["admitted", "asked", "refused", NoPlace]
"""`asked`: it has to be activated first."""
PinMethod = Literal["first", "kept", "code", "mac", "key"]
"""How a MAC got its owner: by the first Client-Id that asked; kept, because it was connected before there were owners;
by the code that it showed, or a claim that was accepted; by its MAC, and then the first Client-Id that asked; by a
burnt-in key."""
