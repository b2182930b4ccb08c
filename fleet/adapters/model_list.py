"""The models that an endpoint lists: `GET /models`, which is free of charge and shows whether the key is valid."""

from pydantic import BaseModel, ValidationError

from fleet.adapters.model_endpoint import ModelEndpoint


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model] = []


async def list_models(endpoint: ModelEndpoint, deadline: float) -> list[str]:
    """Return the names of the models; none if the answer is no such list.

    Args:
        endpoint: The endpoint.
        deadline: When the list must be there, on the loop's clock.

    Raises:
        ProviderError: The endpoint cannot be reached, refused, or was silent for too long.
    """
    async with endpoint.get("/models", deadline) as body:
        answer = await body.whole(deadline)
    try:
        return [model.id for model in _Models.model_validate_json(answer).data]
    except ValidationError:
        return []
