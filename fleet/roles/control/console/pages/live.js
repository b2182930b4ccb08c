// Who talks now, and what is said, word by word. Nothing of it is kept; that somebody watches is in the audit log.
import { ago, Badge, Card, Choices, classes, Empty, get, go, Head, html, Loaded, may, t, useEvents, useLoad,
  useNames, useSignal } from "../kit.js";
import { EventLog } from "../parts/event-log.js";
import { Transcript } from "../parts/transcript.js";

const SHOWN = 100;
/** Devices that are kept, those with the newest events. */
const KEPT = 1_000;
/** @typedef {{device: string, at: string, session: string, talking: boolean, turns: number}} Talker */

/** @param {Map<string, Talker>} before @param {any[]} events @returns {Map<string, Talker>} */
export function follow(before, events) {
  const after = new Map(before);
  for (const { kind, device, at, data } of events) {
    if (!device) continue;
    const known = after.get(device);
    // Who has the newest event comes last.
    after.delete(device);
    if (known) after.set(device, known);
    if (kind === "session.started") after.set(device, { device, at, session: data.session, talking: true, turns: 0 });
    else if (kind === "session.ended" && known && known.session === data.session) after.set(device, { ...known, at,
      talking: false });
    else if (kind === "device.offline" && known) after.set(device, { ...known, at, talking: false });
    else if (kind === "turn.answered" || kind === "turn.failed") after.set(device, { device,
      session: data.session ?? "", talking: known?.talking ?? false, turns: (known?.turns ?? 0) + 1, at });
  }
  if (after.size > KEPT) return new Map([...after].slice(-KEPT));
  return after;
}

export default function Live({ query }) {
  const talkers = useSignal(/** @type {Map<string, Talker>} */ (new Map()));
  const first = useLoad(async (signal) => {
    const { items } = await get("/events", { newest: true, limit: 500 }, signal);
    talkers.value = follow(new Map(), items);
    return true;
  }, []);
  useEvents(["session", "turn", "device.offline"], (events) => {
    if (!first.data || events.some((one) => one.kind === "gap")) first.again();
    else talkers.value = follow(talkers.value, events);
  }, 300);
  const shown = [...talkers.value.values()].sort((a, b) => Number(b.talking) - Number(a.talking)
    || (b.at > a.at ? 1 : -1));
  if (query.device && !talkers.value.has(query.device)) shown.unshift({ device: query.device, at: "", session: "",
    talking: false, turns: 0 });
  const view = query.view ?? "talk", names = useNames(shown.slice(0, SHOWN).map((one) => one.device));
  return html`<${Head} title=${t("page.live")} about=${t("live.about")}>
      <${Choices} label=${t("live.view")} value=${view} onValue=${(one) => go(["live"], { view: one === "talk" ? ""
        : one, device: query.device })} choices=${[["talk", t("page.conversations")], ["turns", t("usage.turns")],
        ["events", t("live.events")], ["failures", t("live.failures")]]} /><//>
    ${view === "events" ? html`<${EventLog} key="all" />` : view === "turns" ? html`<${EventLog} key="turns"
      kinds="turn" title=${t("usage.turns")} />` : view === "failures" ? html`<${EventLog} key="failures"
      kinds="turn.failed,turn.interrupted" title=${t("live.failures")} />`
    : html`<${Loaded} of=${first}>${() => html`<div class="split"><${Card} flush
      title=${t("page.devices")}>${shown.length === 0 ? html`<${Empty} icon="live"
      title=${t("live.none")}>${t("live.none-about")}<//>`
      : html`<div class="talkers">${shown.slice(0, SHOWN).map((one) => html`<button type="button" key=${one.device}
        aria-pressed=${String(one.device === query.device)} onClick=${() => go(["live"], { device: one.device })}>
        <span class=${classes("dot", one.talking && "live")}></span><span class="grow"><span class=${classes("clip",
          !names.get(one.device) && "mono")}>${names.get(one.device) || one.device}</span><span
          class="muted small">${one.talking ? t("live.talking") : one.at ? ago(one.at) : t("live.waiting")}</span>
          </span>
        ${one.turns > 0 && html`<${Badge}>${t("live.turns", { count: one.turns })}<//>`}</button>`)}</div>`}<//>
      ${query.device && may("conversations:read") ? html`<${Transcript} key=${query.device} mac=${query.device} />`
        : html`<${Card}><${Empty} icon="chat" title=${t("live.choose")}>${t(may("conversations:read")
        ? "live.choose-about" : "live.no-scope")}<//><//>`}</div>`}<//>`}`;
}
