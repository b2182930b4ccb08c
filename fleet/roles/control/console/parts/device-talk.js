// Texts for a device: one that its agent answers, or one that it speaks as it is.
import { html, useSignal } from "../core/ui.js";
import { ask, part } from "../core/api.js";
import { t } from "../core/i18n.js";
import { may } from "../core/session.js";
import { Badge, Button, Card, Choices, Fault, Note } from "./basics.js";
import { Field, TextArea } from "./form.js";

export function DeviceTalk({ device, path }) {
  const way = useSignal("turns"), text = useSignal(""), busy = useSignal(false),
    error = useSignal(/** @type {any} */ (null));
  const said = useSignal(/** @type {{way: string, text: string, state: any}[]} */ ([]));
  if (!may("devices:command")) return null;
  const send = async (event) => {
    event.preventDefault();
    const asked = { way: way.value, text: text.value };
    busy.value = true;
    error.value = null;
    try {
      let state = await ask(`POST ${path}${way.value === "say" ? ":say" : "/turns"}`, { query: { wait: 20 },
        body: { text: asked.text } });
      const at = said.value.length;
      said.value = [...said.value, { ...asked, state }];
      text.value = "";
      for (let turn = 0; turn < 60 && state.state === "accepted"; turn += 1) {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        state = await ask(`GET ${path}/turns/${part(state.id)}`);
        said.value = said.value.map((one, place) => (place === at ? { ...one, state } : one));
      }
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  return html`<${Card} title=${t("talk.title")} aside=${html`<${Choices} label=${t("talk.way")} value=${way.value}
    onChoice=${(one) => { way.value = one; }} choices=${[["turns", t("talk.turns")], ["say", t("talk.say")]]} />`}>
    <div class="stack">${said.value.length > 0 && html`<div class="talk" role="log"
      aria-label=${t("talk.title")}>${said.value.map((one) => html`<div class="turn">
        ${one.way === "turns" && html`<div class="said user">${one.text}</div>`}
        <div class="said answer">${one.way === "say" ? one.text : one.state.text || "…"}</div>
        ${one.state.state !== "answered" && html`<div><${Badge} kind=${one.state.state === "failed" ? "bad"
          : "info"}>${t(`turn.${one.state.state}`)}<//></div>`}</div>`)}</div>`}
      ${!device.online && html`<${Note} kind="warn">${t("talk.offline")}<//>`}
      <form class="form" onSubmit=${send}><${Field} label=${t(`talk.${way.value}`)}
        hint=${t(`talk.${way.value}-about`)}>
        <${TextArea} rows="2" maxlength="4000" required value=${text.value}
          onValue=${(given) => { text.value = given; }} /><//>
        <${Fault} error=${error.value} /><div class="actions"><${Button} type="submit" kind="main-action"
          busy=${busy.value} disabled=${!device.online}>${t("send")}<//></div></form></div><//>`;
}
