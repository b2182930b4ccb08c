"""The settings of EMQX, beside those of every broker."""

from pydantic import BaseModel, SecretStr

from fleet.ground.settings.fields import setting


class Emqx(BaseModel):
    """How EMQX and the api know each other. With another broker none of them is set."""

    broker_token: SecretStr | None = setting(
        None,
        "Bearer token with which EMQX asks the api who may connect; EMQX's configuration holds the same one.",
        ("api",),
        without="the api answers no such question",
    )
    emqx_api_url: str | None = setting(
        None,
        "EMQX's REST API, at which the api closes the connections of revoked devices. Needs FLEET_EMQX_API_KEY.",
        ("api",),
        form="http(s)://host:port",
        without="nothing is closed there",
    )
    emqx_api_key: SecretStr | None = setting(
        None, "API key of EMQX with its secret, for FLEET_EMQX_API_URL.", ("api",), form="key:secret"
    )
