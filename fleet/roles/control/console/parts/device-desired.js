// What a device should be set to, what it reports, and what became of each property.
import { ask, Badge, bound, Button, Card, Field, html, Loaded, may, Note, NumberInput, Rows, say, sayFault, Select,
  Submit, t, TextInput, Time, useGet, useNone, useSignal, useWork } from "../kit.js";

const NAMES = ["volume", "brightness", "theme", "timezone", "language"];
const POLICIES = ["once", "enforce", "watch"];
const STATES = { pending: "", sent: "info", confirmed: "good", changed: "", drift: "warn", refused: "bad",
  unsupported: "bad", unknown: "warn" };

export function DeviceDesired({ path }) {
  const found = useGet(`${path}/desired`);
  const change = async (desired, policies, document) => {
    const back = Object.fromEntries(Object.keys(desired).map((name) => [name, document.desired[name] ?? null]));
    const after = await ask(`PATCH ${path}/desired`, { body: { desired, policies }, version: document.version });
    found.set(after);
    say(t("saved"), { undo: async () => {
      const restored = await ask(`PATCH ${path}/desired`, { body: { desired: back },
        version: after.version }).catch(sayFault);
      if (restored) found.set(restored);
    } });
  };
  return html`<${Loaded} of=${found}>${(document) => html`
    ${document.drift && html`<${Note} kind="warn">${t("desired.drift")}<//>`}
    <div class="columns"><${State} document=${document} change=${change} again=${found.again} />
      ${may("devices:command") && html`<${Wish} document=${document} change=${change} />`}</div>`}<//>`;
}

function State({ document, change, again }) {
  const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "object"
    ? JSON.stringify(value) : String(value));
  const remove = (one) => {
    const tool = one.name.startsWith("tools.") && one.name.slice(6);
    change(tool ? { tools: { [tool]: null } } : { [one.name]: null }, {}, document).catch(sayFault);
  };
  const own = document.properties.length;
  return html`<${Card} flush title=${t("device.tab.desired")}
    aside=${html`<${Button} kind="quiet" icon="retry" label=${t("retry")} onClick=${again} />`}>
    ${own === 0 ? html`<p class="muted" style=${{ padding: "0 20px 18px" }}>${t("desired.none")}</p>` : html`
    <${Rows} items=${document.properties} label=${t("device.tab.desired")} row=${(one) => one.name} columns=${[
      { name: t("desired.property"), show: (one) => (NAMES.includes(one.name) ? html`<strong
        class="nowrap">${t(`desired.${one.name}`)}</strong>` : html`<strong>${one.name}</strong>`) },
      { name: t("desired.wanted"), show: (one) => html`<span class="wrap">${shown(one.desired)}</span>` },
      { name: t("desired.reported"), show: (one) => shown(one.reported) },
      { name: t("query.state"), show: (one) => html`<div title=${one.text}><${Badge}
        kind=${STATES[one.state] ?? ""}>${t(`desired.state.${one.state}`)}<//></div><span class="muted small">
        <${Time} at=${one.since} /></span>` },
      { name: t("desired.policy"), wide: true, show: (one) => t(`desired.policy.${one.policy}`) },
      { name: "", right: true, show: (one) => may("devices:command") && html`<${Button} kind="quiet" icon="close"
        label=${t("desired.remove", { name: one.name })} onClick=${() => remove(one)} />` }]} />`}<//>`;
}

function Wish({ document, change }) {
  const name = useSignal("volume"), value = useNone(), policy = useSignal("once");
  const numeric = name.value === "volume" || name.value === "brightness";
  const work = useWork(async () => {
    await change({ [name.value]: value.value }, { [name.value]: policy.value }, document);
    value.value = null;
  });
  return html`<${Card} title=${t("desired.set")}><form class="form" onSubmit=${work.submit}>
    <${Field} label=${t("desired.property")}><${Select} value=${name.value} choices=${NAMES.map((one) => [one,
      t(`desired.${one}`)])}
      onValue=${(one) => { name.value = one; value.value = null; }} /><//>
    ${numeric ? html`<${Field} key=${name.value} label=${t("desired.value")} hint=${t("desired.range")}><${NumberInput} min="0" max="100"
      step="1" required ...${bound(value)} /><//>`
      : html`<${Field} key=${name.value} label=${t("desired.value")}><${TextInput} required value=${value.value ?? ""}
        placeholder=${{ theme: "dark", timezone: "Asia/Shanghai", language: "zh" }[name.value]}
          onValue=${(given) => { value.value = given; }} /><//>`}
    <${Field} label=${t("desired.policy")} hint=${t(`desired.policy.${policy.value}-about`)}><${Select}
      ...${bound(policy)} choices=${POLICIES.map((one) => [one, t(`desired.policy.${one}`)])}
        /><//>
    <${Submit} work=${work}>${t("save")}<//></form>
      <//>`;
}
