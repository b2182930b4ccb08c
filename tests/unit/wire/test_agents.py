import pytest
from pydantic import ValidationError

from fleet.wire.agents import AgentDocument, CompiledAgent


def test_the_digest_names_exactly_the_content() -> None:
    one = CompiledAgent(id="1", version=1, document=AgentDocument(prompt="p"))
    assert one.digest == CompiledAgent.model_validate_json(one.model_dump_json(exclude_defaults=True)).digest
    assert one.digest != CompiledAgent(id="1", version=1, document=AgentDocument(prompt="q")).digest


def test_a_field_of_a_newer_version_is_ignored() -> None:
    assert AgentDocument.model_validate_json('{"prompt":"p","mood":"good","voice":{"pitch":2}}').prompt == "p"


@pytest.mark.parametrize("wrong", ['{"endpoint_ms":10}', '{"voice":{"speed":9}}', '{"language":"English"}'])
def test_what_no_setting_may_be_no_agent_may_be(wrong: str) -> None:
    with pytest.raises(ValidationError):
        AgentDocument.model_validate_json(wrong)
