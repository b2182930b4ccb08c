"""The settings of EMQX, beside those of every broker."""

from pydantic import BaseModel, Field, SecretStr


class Emqx(BaseModel):
    """How EMQX and the api know each other."""

    broker_token: SecretStr | None = Field(None, description="Token with which EMQX asks the api who may connect.")
    emqx_api_url: str | None = Field(None, description="EMQX's REST API, http(s)://host:port, to close connections.")
    emqx_api_key: SecretStr | None = Field(None, description="API key of EMQX with its secret, key:secret.")
