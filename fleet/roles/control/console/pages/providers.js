// Endpoints of models that agents name. Keys are written here and never shown again.
import { html, useSignal } from "../core/ui.js";
import { ask } from "../core/api.js";
import { span, t } from "../core/i18n.js";
import { may } from "../core/session.js";
import { Badge, Button, Empty, Fault, Head } from "../parts/basics.js";
import { Confirm, Dialog, say } from "../parts/feedback.js";
import { Field, Select, TextArea, TextInput } from "../parts/form.js";
import { useList } from "../parts/load.js";
import { ListTable } from "../parts/table.js";

export default function Providers() {
  const providers = useList("/providers", { limit: 100 }), editing = useSignal(/** @type {any} */ (null)),
    removing = useSignal(/** @type {any} */ (null));
  const make = may("providers:write") && html`<${Button} icon="plus" kind="main-action"
    onClick=${() => { editing.value = {}; }}>${t("providers.make")}<//>`;
  return html`<${Head} title=${t("page.providers")} about=${t("providers.about")}>${make}<//>
    <${ListTable} of=${providers} label=${t("page.providers")} row=${(one) => one.id} empty=${html`<${Empty}
      icon="speaker" title=${t("providers.none")} action=${make}>${t("providers.none-about")}<//>`} columns=${[
      { name: t("query.name"), show: (one) => html`<strong>${one.name}</strong>` },
      { name: t("providers.kind"), show: (one) => html`<${Badge} kind="info">${t(`providers.kind.${one.kind}`)}<//>` },
      { name: t("providers.address"), wide: true, show: (one) => html`<span class="mono small wrap">${one.base_url
        || one.adapter}</span>` },
      { name: t("agents.model"), wide: true, show: (one) => one.model || "–" },
      { name: t("providers.key"), wide: true, show: (one) => (one.has_key ? html`<${Badge}
        kind="good">${t("providers.has-key")}<//>` : html`<span class="muted">–</span>`) },
      { name: t("providers.state"), show: (one) => may("providers:write") && one.base_url && html`<${Proof}
        provider=${one} />` },
      { name: "", right: true, show: (one) => may("providers:write") && html`<span class="row tight nowrap"
        style=${{ flexWrap: "nowrap", justifyContent: "flex-end" }}><${Button} kind="quiet" icon="edit"
        label=${t("providers.change", { name: one.name })} onClick=${() => { editing.value = one; }} />
        <${Button} kind="quiet" icon="trash" label=${t("providers.delete", { name: one.name })}
          onClick=${() => { removing.value = one; }} /></span>` },
    ]} />
    ${editing.value && html`<${Edit} provider=${editing.value} onClose=${() => { editing.value = null; }}
      again=${providers.again} />`}
    ${removing.value && html`<${Confirm} title=${t("providers.delete", { name: removing.value.name })}
      action=${t("delete")} onClose=${() => { removing.value = null; }}
      run=${async () => { await ask(`DELETE /providers/${removing.value.id}`); providers.again(); }}>
      <p>${t("providers.delete-about")}</p><//>`}`;
}

/** Asks the endpoint for its models: free of charge, and shows whether address and key are right. */
function Proof({ provider }) {
  const busy = useSignal(false), found = useSignal(/** @type {any} */ (null)),
    error = useSignal(/** @type {any} */ (null));
  const test = async () => {
    busy.value = true;
    error.value = null;
    try {
      found.value = await ask(`POST /providers/${provider.id}:test`);
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  const good = found.value?.reachable && !found.value.detail;
  return html`<div class="row"><${Button} busy=${busy.value} onClick=${test}>${t("providers.test")}<//>${error.value
    && html`<${Badge} kind="bad">${error.value.words}<//>`}
    ${found.value && html`<span title=${found.value.detail}><${Badge} kind=${good ? "good"
      : "bad"}>${found.value.reachable ? span(found.value.seconds * 1000) : t("providers.unreachable")}<//></span>`}
    ${found.value?.detail && html`<span class="small muted wrap">${found.value.detail}</span>`}</div>`;
}

function Edit({ provider, onClose, again }) {
  const fresh = provider.id === undefined, busy = useSignal(false), error = useSignal(/** @type {any} */ (null));
  const values = useSignal({ name: "", kind: "chat", adapter: "openai", base_url: "", key: "", model: "", voices: "",
    ...provider, ...(fresh ? {} : { voices: provider.voices.join("\n") }) });
  const set = (name) => (value) => { values.value = { ...values.value, [name]: value }; };
  const submit = async (event) => {
    event.preventDefault();
    busy.value = true;
    const { name, kind, adapter, base_url, key, model, voices } = values.value;
    const shared = { base_url: base_url.trim(), model: model.trim(),
      voices: voices.split("\n").map((one) => one.trim()).filter(Boolean), ...(key ? { key } : {}) };
    try {
      await (fresh ? ask("POST /providers", { body: { name: name.trim(), kind, adapter, ...shared } })
        : ask(`PATCH /providers/${provider.id}`, { body: shared }));
      say(t("saved"));
      again();
      onClose();
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  return html`<${Dialog} title=${fresh ? t("providers.make") : t("providers.change", { name: provider.name })}
    onClose=${onClose}><form class="form" onSubmit=${submit}>
    ${fresh && html`<div class="pair"><${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput}
      value=${values.value.name} required pattern="[A-Za-z0-9._\\-]{1,63}" autofocus onValue=${set("name")} /><//>
      <${Field} label=${t("providers.kind")}><${Select} value=${values.value.kind} onValue=${set("kind")}
        choices=${["chat", "recognition", "voice"].map((one) => [one, t(`providers.kind.${one}`)])} /><//></div>`}
    <${Field} label=${t("providers.address")} hint=${t("providers.address-hint")}><${TextInput} class="mono"
      value=${values.value.base_url} placeholder="https://llm.example/v1" onValue=${set("base_url")} /><//>
    <${Field} label=${t("providers.key")} hint=${provider.has_key ? t("providers.key-kept")
      : t("providers.key-hint")}><${TextInput} type="password" autocomplete="off" class="mono"
      value=${values.value.key} onValue=${set("key")} /><//>
    <${Field} label=${t("agents.model")}><${TextInput} value=${values.value.model} onValue=${set("model")} /><//>
    ${values.value.kind === "voice" && html`<${Field} label=${t("providers.voices")}
      hint=${t("providers.voices-hint")}><${TextArea} rows="3" value=${values.value.voices} onValue=${set("voices")}
      /><//>`}
    <${Fault} error=${error.value} /><div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button}
      type="submit" kind="main-action" busy=${busy.value}>${t("save")}<//></div></form><//>`;
}
