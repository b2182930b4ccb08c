// Devices that come: those that show a code or ask for the place of another one, and one that is added by hand.
import { ask, attempt, bound, Button, Card, Choices, Field, FormDialog, get, go, html, may, part, say, t, TextInput,
  Time, to, useEvents, useLoad, useSignal, useWork } from "../kit.js";

export function AddDevice({ onClose }) {
  const way = useSignal("code"), code = useSignal(""), mac = useSignal(""), name = useSignal("");
  const work = useWork(async () => {
    const found = way.value === "code" ? await ask("POST /devices:bind", { body: { code: code.value } })
      : await ask("POST /devices", { body: { mac: mac.value.trim(), name: name.value.trim() } });
    say(t("devices.added", { mac: found.mac }));
    onClose();
    go(["devices", found.mac]);
  });
  return html`<${FormDialog} title=${t("devices.add")} onClose=${onClose} work=${work}
    action=${t("add")}>
    <div><${Choices} label=${t("devices.add")} value=${way.value}
      onValue=${(one) => { way.value = one; }} choices=${[["code", t("devices.by-code")], ["mac",
      t("devices.by-mac")]]} /></div>
    ${way.value === "code" ? html`<p class="muted">${t("devices.code-about")}</p>
      <${Field} key="code" label=${t("devices.code")}><${TextInput} ...${bound(code)} inputmode="numeric"
        autocomplete="one-time-code" class="mono" placeholder="123 456" autofocus required /><//>`
    : html`<p class="muted">${t("devices.mac-about")}</p><${Field} key="mac" label="MAC"><${TextInput}
      ...${bound(mac)} class="mono" placeholder="02:00:00:00:00:01" required /><//>
      <${Field} key="name" label=${t("query.name")}><${TextInput} ...${bound(name)} maxlength="100" /><//>`}<//>`;
}

export function Waiting() {
  const found = useLoad(async (signal) => {
    const [waiting, claims] = await Promise.all([get("/devices:waiting", {}, signal), get("/devices:claims", {},
      signal)]);
    return { waiting: waiting.items, claims: claims.items };
  }, []);
  const busy = useSignal(""), decided = useSignal(/** @type {string[]} */ ([]));
  useEvents(["device.waiting", "device.claimed", "device.bound", "device.refused"], found.again, 500);
  const decide = async (mac, verb, body, text) => {
    busy.value = mac;
    await attempt(async () => {
      await ask(verb, { body });
      decided.value = [...decided.value, body.code ?? body.client];
      say(t(text, { mac }));
      found.again();
    });
    busy.value = "";
  };
  // What was decided goes at once, whenever the list is read again.
  const waiting = (found.data?.waiting ?? []).filter((one) => !decided.value.includes(one.code)),
    claims = (found.data?.claims ?? []).filter((one) => !decided.value.includes(one.client));
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
