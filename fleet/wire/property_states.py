"""The states and policies of the properties that a device should have."""

from typing import Final, Literal, get_args

PropertyState = Literal["pending", "sent", "confirmed", "changed", "drift", "refused", "unsupported", "unknown"]
"""`pending`: the device was not told yet. `sent`: it took the value, and does not report it. `confirmed`: it reports
the value. `changed`: it reported the value, and somebody changed it later, as the policy `once` allows. `drift`: it
reports another value than it should. `refused`: it did not take the value. `unsupported`: it has no such property.
`unknown`: nobody knows whether it took the value."""
PropertyPolicy = Literal["once", "enforce", "watch"]
"""`once`: set it once for each desired version. `enforce`: set it again when it differs. `watch`: only tell of it."""
POLICIES: Final[tuple[PropertyPolicy, ...]] = get_args(PropertyPolicy)
