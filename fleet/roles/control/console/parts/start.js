// How far the setting up of a new server is, which of its steps this browser skips, and what is first to be done.
import { Button, Card, get, html, LinkButton, may, me, signal, t, useEvents, useLoad } from "../kit.js";

export const STEPS = ["owner", "models", "language", "device", "talk"];
const KEY = "fleet.start";

/** Steps that were skipped; "hidden" once nobody wants to see any of them. */
export const skipped = signal(/** @type {Set<string>} */ (new Set((localStorage.getItem(KEY) ?? "").split(","))));

/** @param {string} name @param {boolean} [on] */
export function skip(name, on = true) {
  const after = new Set(skipped.value);
  if (on) after.add(name);
  else after.delete(name);
  skipped.value = after;
  localStorage.setItem(KEY, [...after].join());
}

/** The agent that all devices without another have, if there is one. @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function siteAgent(signal) {
  const { items } = await get("/assignments", { limit: 500 }, signal), given = items.find((one) => one.site);
  return given ? get(`/agents/${given.agent}`, {}, signal) : null;
}

/** @param {AbortSignal} signal @returns {Promise<Record<string, boolean>>} which steps are done */
async function read(signal) {
  const [accounts, agent, counts, turns] = await Promise.all([
    may("accounts:write") ? get("/accounts", { limit: 1 }, signal) : { items: [] },
    may("agents:read") ? siteAgent(signal) : null,
    get("/devices:counts", { by: "state" }, signal),
    may("events:read") ? get("/events", { kinds: "turn", newest: true, limit: 1 }, signal) : { items: [] },
  ]);
  return { owner: me.value?.kind === "account" || accounts.items.length > 0, models: Boolean(agent?.live
    && agent.draft.chat.provider), language: Boolean(agent?.live && agent.draft.language),
    device: ["bound", "registered"].some((one) => counts.items[0].values[one]), talk: turns.items.length > 0 };
}

/** Which steps are done, as long as a part is shown. */
export function useStart() {
  const state = useLoad(read, []);
  useEvents(["device.registered", "device.online", "device.bound", "turn"], () => state.again());
  const open = STEPS.filter((one) => state.data && !state.data[one] && !skipped.value.has(one));
  return { done: state.data ?? {}, open, error: state.error, known: Boolean(state.data), again: state.again };
}

/** What is left of it, if it was not skipped. */
export const StartCard = () => !skipped.value.has("hidden") && may("devices:write", "agents:write") && html`<${Left} />`;

function Left() {
  const { open, known } = useStart();
  if (!known || open.length === 0) return null;
  return html`<${Card} title=${t("page.start")} aside=${html`<${Button} kind="quiet" icon="close" label=${t("start.hide")}
    onClick=${() => skip("hidden")} />`}><div class="row apart"><span>${t("start.left", { count: STEPS.length - open.length,
    all: STEPS.length, next: t(`start.${open[0]}`) })}</span><${LinkButton} kind="main-action"
    href="#/start">${t("start.go")}<//></div><//>`;
}

/** What to do while there is no device yet. */
export const FirstSteps = () => html`<${Card} title=${t("start.device-title")}><ol class="stages">${["wifi", "address",
  "code", "talk"].map((step, place) => html`
  <li key=${step}><span class="step">${place + 1}</span><div><strong>${t(`first.${step}`)}</strong><div
    class="muted">${t(`first.${step}-about`)}</div></div></li>`)}</ol>
  <div class="row" style=${{ marginTop: "16px" }}><a class="button main-action"
    href=${"#/start/device"}>${t("start.go")}</a><a class="button" href=#/talk>${t("start.talk-here")}</a>
    </div><//>`;
