// The last events, and those that happen now.
import { Badge, Card, clock, Empty, exact, get, html, Loaded, t, textOr, to, useEvents, useLoad, useSignal } from
  "../kit.js";

const MOST = 100;
export const KINDS = { failed: "bad", halted: "bad", offline: "", online: "good", answered: "good",
  interrupted: "warn", claimed: "warn", waiting: "warn", lost: "bad" };

/** @param {{device?: string, kinds?: string, title?: any, none?: string}} props  none: said while there is none */
export function EventLog({ device = "", kinds = "", title, none }) {
  const found = useLoad(async (signal) => (await get("/events", { device, kinds, newest: true, limit: MOST },
    signal)).items.reverse(), [device, kinds]);
  useEvents(kinds ? kinds.split(",") : ["device", "session", "turn", "tool", "job", "firmware", "state",
    "alert"], (events) => {
    // What came while the list was read may be missing in it, or be in both.
    if (!found.data || events.some((one) => one.kind === "gap")) return found.again();
    const known = new Set(found.data.map((one) => one.id));
    const fresh = events.filter((one) => one.id && !known.has(one.id) && (!device || one.device === device)).reverse();
    if (fresh.length) found.set([...fresh, ...found.data].slice(0, MOST));
  }, 300);
  return html`<${Loaded} of=${found}>${(items) => html`<${Card} title=${title ?? t("device.tab.events")}>
    ${items.length === 0 ? html`<${Empty} icon="live" title=${t("events.none")}>${none ?? t("events.none-about")}<//>`
      : items.map((one) => html`<${Line} key=${one.id} event=${one} device=${!device} />`)}<//>`}<//>`;
}

function Line({ event, device }) {
  const open = useSignal(false);
  const about = Object.entries(event.data).filter(([, value]) => value !== "" && typeof value !== "object").slice(0,
    4).map(([name, value]) => `${name} ${value}`).join(" · ");
  return html`<div class="log-line"><time class="muted number small" datetime=${event.at}
    title=${exact(event.at)}>${clock(event.at)}</time><div>
    <div class="row"><${Badge} kind=${KINDS[event.kind.split(".")[1]] ?? ""}>${textOr(
      `event.${event.kind.replace(".", "-")}`, event.kind)}<//>${device && event.device && html`<a class="mono small"
      href=${to(["devices", event.device])}>${event.device}</a>`}
      ${event.data.offer && html`<a class="small" href=${to(["jobs", event.data.offer.split("-")[0]])}>${t("firmware.job",
        { id: event.data.offer.split("-")[0] })}</a>`}
      <button type="button" class="button quiet event-more" aria-expanded=${String(open.value)}
        onClick=${() => { open.value = !open.value; }}><span class="clip small">${about || "…"}</span></button></div>
    ${open.value && html`<pre class="code" tabindex="0">${JSON.stringify(event.data, null, 2)}</pre>`}</div></div>`;
}
