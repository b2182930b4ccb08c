"""The settings for EMQX, in addition to those for every broker."""

from pydantic import BaseModel, SecretStr

from fleet.ground.settings.address_types import HttpUrl
from fleet.ground.settings.fields import setting


class EmqxGroup(BaseModel):
    """How EMQX and the api authenticate to each other. Other brokers need none of them."""

    broker_token: SecretStr | None = setting(
        None,
        "Bearer token of EMQX's authentication requests to the api; EMQX's configuration holds the same one.",
        ("api",),
        unset="the api has no route for these requests",
    )
    emqx_api_url: HttpUrl | None = setting(
        None,
        "EMQX's REST API, by which the api closes connections of revoked devices. Needs FLEET_EMQX_API_KEY.",
        ("api",),
        syntax="http(s)://host:port",
        unset="the api closes no connections",
    )
    emqx_api_key: SecretStr | None = setting(
        None, "API key of EMQX with its secret, for FLEET_EMQX_API_URL.", ("api",), syntax="key:secret"
    )
