// Devices that come: those that show a code or ask for the place of another one, and one that is added by hand.
import { ask, Button, Card, Choices, Dialog, doing, Fault, Field, get, go, html, may, part, say, sayFault, t,
  TextInput, Time, to, useEvents, useLoad, useSignal } from "../kit.js";

export function AddDevice({ onClose }) {
  const way = useSignal("code"), code = useSignal(""), mac = useSignal(""), name = useSignal("");
  const busy = useSignal(false), error = useSignal(/** @type {any} */ (null));
  const submit = doing(busy, error, async () => {
    const found = way.value === "code" ? await ask("POST /devices:bind", { body: { code: code.value } })
      : await ask("POST /devices", { body: { mac: mac.value.trim(), name: name.value.trim() } });
    say(t("devices.added", { mac: found.mac }));
    onClose();
    go(["devices", found.mac]);
  });
  return html`<${Dialog} title=${t("devices.add")} onClose=${onClose}><form class="form" onSubmit=${submit}>
    <div><${Choices} label=${t("devices.add")} value=${way.value}
      onChoice=${(one) => { way.value = one; error.value = null; }} choices=${[["code", t("devices.by-code")], ["mac",
      t("devices.by-mac")]]} /></div>
    ${way.value === "code" ? html`<p class="muted">${t("devices.code-about")}</p>
      <${Field} key="code" label=${t("devices.code")}><${TextInput} value=${code.value} inputmode="numeric"
        autocomplete="one-time-code" class="mono" placeholder="123 456" autofocus required
        onValue=${(text) => { code.value = text; }} /><//>`
    : html`<p class="muted">${t("devices.mac-about")}</p><${Field} key="mac" label="MAC"><${TextInput}
      value=${mac.value} class="mono" placeholder="02:00:00:00:00:01" required
      onValue=${(text) => { mac.value = text; }} /><//>
      <${Field} key="name" label=${t("query.name")}><${TextInput} value=${name.value} maxlength="100"
        onValue=${(text) => { name.value = text; }} /><//>`}
    <${Fault} error=${error.value} /><div class="actions"><${Button} onClick=${onClose}>${t("cancel")}<//><${Button}
      type="submit" kind="main-action" busy=${busy.value}>${t("add")}<//></div></form><//>`;
}

export function Waiting() {
  const found = useLoad(async (signal) => {
    const [waiting, claims] = await Promise.all([get("/devices:waiting", {}, signal), get("/devices:claims", {},
      signal)]);
    return { waiting: waiting.items, claims: claims.items };
  }, []);
  const busy = useSignal("");
  useEvents(["device.waiting", "device.claimed", "device.bound", "device.refused"], found.again, 500);
  const decide = async (mac, verb, body, text) => {
    busy.value = mac;
    try {
      await ask(verb, { body });
      say(t(text, { mac }));
      found.again();
    } catch (fault) {
      sayFault(fault);
    }
    busy.value = "";
  };
  const { waiting = [], claims = [] } = found.data ?? {};
  if (!waiting.length && !claims.length) return null;
  return html`<${Card} title=${t("waiting.title")}><div class="stack tight">
    ${waiting.slice(0, 20).map((one) => html`<div class="row apart" key=${one.mac}><div class="row"><strong
      class="mono">${one.code.replace(/(\d{3})(?=\d)/, "$1 ")}</strong><a href=${to(["devices", one.mac])}
      class="mono">${one.mac}</a></div>
      ${may("devices:write") && html`<${Button} kind="main-action" icon="check" busy=${busy.value === one.mac}
        onClick=${() => decide(one.mac, "POST /devices:bind", { code: one.code },
        "devices.added")}>${t("waiting.accept")}<//>`}</div>`)}
    ${claims.slice(0, 20).map((one) => html`<div class="row apart" key=${one.mac + one.client}><div><a
      href=${to(["devices", one.mac])} class="mono">${one.mac}</a> <span class="muted">${t("waiting.claim",
      { address: one.address })} · <${Time} at=${one.last} /></span></div>
      ${may("devices:write") && html`<div class="row"><${Button} onClick=${() => decide(one.mac,
        `POST /devices/${part(one.mac)}:refuse`, { client: one.client }, "waiting.refused")}>${t("waiting.refuse")}<//>
        <${Button} kind="main-action" onClick=${() => decide(one.mac, `POST /devices/${part(one.mac)}:accept`,
          { client: one.client }, "devices.added")}>${t("waiting.accept")}<//></div>`}</div>`)}</div><//>`;
}
