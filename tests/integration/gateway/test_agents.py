"""What the agent of the site changes in the next turn of a client, on a gateway that goes on."""

from typing import Any

from fleet.adapters.redis.agents.compiled_agents import CompiledAgents
from fleet.adapters.redis.client.store import Store
from fleet.wire.agents import AgentDocument, CompiledAgent
from tests.support.gateway_stage import Client, ScriptedModel, gateway_stage, says
from tests.support.registrar_client import registrar_client, registrar_gateway


async def publish(store: Store, **fields: Any) -> None:
    """Publish an agent of the site, or its next version."""
    agents = CompiledAgents(store)
    document = AgentDocument.model_validate(fields)
    await agents.publish([CompiledAgent(id="1", document=document)])
    await agents.set_usual("1")


async def ask(client: Client, model: ScriptedModel) -> tuple[str, Any]:
    """Return the system prompt and the options of a turn's request."""
    await client.send("text_input", text="hello")
    await client.until("llm_response")
    messages, _, options = model.asked[-1]
    return messages[0].text, options


async def test_each_field_counts_from_a_clients_next_turn_on(redis_url: str) -> None:
    model = ScriptedModel(says("A."))
    async with gateway_stage(redis_url, model) as stage, stage.client() as client:
        store = await Store.open(redis_url, 16)
        usual, options = await ask(client, model)
        assert (options.temperature, options.max_tokens) == (0.7, 2048)
        await publish(store, prompt="You are a pirate.", chat={"temperature": 0.25, "max_tokens": 9})
        prompt, options = await ask(client, model)
        assert "You are a pirate." in prompt and (options.temperature, options.max_tokens) == (0.25, 9)
        await client.send("configure", temperature=0.5, enable_context=True)
        _, options = await ask(client, model)
        assert (options.temperature, options.max_tokens) == (0.5, 9)
        assert len(model.told()) > 1
        await publish(store, history_messages=0)
        prompt, _ = await ask(client, model)
        assert prompt == usual and len(model.told()) == 1
        await store.close()


async def test_a_registrar_without_a_device_has_the_agent_of_the_site(redis_url: str) -> None:
    store, model = await Store.open(redis_url, 16), ScriptedModel(says("A."))
    async with registrar_gateway(store, model) as url, registrar_client(url) as client:
        await client.register()
        await publish(store, prompt="You are a pirate.")
        await client.type("hello")
        await client.hear_messages()
        assert "You are a pirate." in model.asked[-1][0][0].text
        await publish(store, prompt="You are a monk.")
        await client.type("hello")
        await client.hear_messages()
        assert "You are a monk." in model.asked[-1][0][0].text
    await store.close()
