"""The settings for EMQX, in addition to those for every broker."""

from pydantic import SecretStr

from fleet.ground.settings.address_types import HttpUrl
from fleet.ground.settings.fields import SettingGroup, setting


class EmqxGroup(SettingGroup):
    """How EMQX and the api authenticate to each other. Other brokers need none of them."""

    title = "EMQX"

    broker_token: SecretStr | None = setting(None, ("api",), unset="the api has no route for these requests")
    """Bearer token of EMQX's authentication requests to the api; EMQX's configuration holds the same one."""
    emqx_api_url: HttpUrl | None = setting(
        None, ("api",), syntax="http(s)://host:port", unset="the api closes no connections"
    )
    """EMQX's REST API, by which the api closes connections of revoked devices. Needs FLEET_EMQX_API_KEY."""
    emqx_api_key: SecretStr | None = setting(None, ("api",), syntax="key:secret")
    """API key of EMQX with its secret, for FLEET_EMQX_API_URL."""
