"""Builds the vision model from the settings."""

from typing import TYPE_CHECKING

from fleet.ground.settings import Settings

if TYPE_CHECKING:
    from fleet.adapters.llm.vision import OpenAiVision

_DEMO_MODEL = "fleet-demo"


def load_vision(settings: Settings) -> "OpenAiVision | None":
    """Return the vision model of the settings; None if it is the demo model, which reads no photos.

    The chat model's key is sent to the chat model's endpoint only.

    Raises:
        ConfigError: The address is not valid.
    """
    own = settings.vision_base_url is not None
    url = settings.vision_base_url or settings.llm_base_url
    named = settings.llm_model if "llm_model" in settings.model_fields_set else None
    model = settings.vision_model or named
    if url is None or (not own and model == _DEMO_MODEL):
        return None
    # Imported late: the import takes half a second, and an api without a model does not need it.
    from fleet.adapters.llm.vision import OpenAiVision

    secret = settings.vision_api_key or (None if own else settings.llm_api_key)
    key = secret.get_secret_value() if secret else None
    return OpenAiVision(url, key, model, settings.vision_timeout)
