// Devices that show a code now, and clients that ask for the place of another device.
import { html, useSignal } from "../core/ui.js";
import { ask, get, part } from "../core/api.js";
import { useEvents } from "../core/events.js";
import { t } from "../core/i18n.js";
import { to } from "../core/router.js";
import { may } from "../core/session.js";
import { Button, Card, Time } from "./basics.js";
import { say, sayFault } from "./feedback.js";
import { useLoad } from "./load.js";

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
