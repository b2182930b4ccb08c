// Who talks now, and what is said, word by word. Nothing of it is kept; that somebody watches is in the audit log.
import { classes, html, useEffect, useSignal } from "../core/ui.js";
import { get, part, Problem } from "../core/api.js";
import { frames, useEvents } from "../core/events.js";
import { ago, span, t } from "../core/i18n.js";
import { go, to } from "../core/router.js";
import { authorized, may, refuse } from "../core/session.js";
import { Badge, Card, Choices, Empty, Fault, Head } from "../parts/basics.js";
import { EventLog } from "../parts/event-log.js";
import { Icon } from "../parts/icon.js";
import { Loaded, useLoad } from "../parts/load.js";
import { useNames } from "../parts/names.js";
import { Waterfall } from "../parts/waterfall.js";

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
    if (events.some((one) => one.kind === "gap")) first.again();
    else talkers.value = follow(talkers.value, events);
  }, 300);
  const shown = [...talkers.value.values()].sort((a, b) => Number(b.talking) - Number(a.talking)
    || b.at.localeCompare(a.at));
  if (query.device && !talkers.value.has(query.device)) shown.unshift({ device: query.device, at: "", session: "",
    talking: false, turns: 0 });
  const view = query.view ?? "talk", names = useNames(shown.slice(0, SHOWN).map((one) => one.device));
  return html`<${Head} title=${t("page.live")} about=${t("live.about")}>
      <${Choices} label=${t("live.view")} value=${view} onChoice=${(one) => go(["live"], { view: one === "talk" ? ""
        : one, device: query.device })} choices=${[["talk", t("live.talk")], ["events", t("live.events")],
        ["failures", t("live.failures")]]} /><//>
    ${view === "events" ? html`<${EventLog} key="all" />` : view === "failures" ? html`<${EventLog} key="failures"
      kinds="turn.failed,turn.interrupted" title=${t("live.failures")} />`
    : html`<${Loaded} of=${first}>${() => html`<div class="split"><${Card} flush
      title=${t("live.talkers")}>${shown.length === 0 ? html`<${Empty} icon="live"
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

function useTranscript(mac) {
  const turns = useSignal(/** @type {any[]} */ ([])), error = useSignal(/** @type {any} */ (null)),
    joined = useSignal(false);
  const change = (turn, what) => {
    const place = turns.value.findIndex((one) => one.turn === turn);
    turns.value = (place < 0 ? [...turns.value, what({ turn, at: "", user: "", sentences: [], tools: [], outcome: "",
      stages: {} })] : turns.value.map((one, at) => (at === place ? what(one) : one))).slice(-50);
  };
  useEffect(() => {
    const ending = new AbortController();
    const run = async () => {
      while (!ending.signal.aborted) {
        try {
          const answer = await fetch(`../v1/devices/${part(mac)}/transcript`,
            { headers: authorized({ Accept: "text/event-stream" }), signal: ending.signal, cache: "no-store" });
          if (answer.status === 401) return refuse();
          if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
          error.value = null;
          joined.value = true;
          await frames(answer, (frame) => {
            const { at, data } = JSON.parse(frame.data);
            if (frame.event === "turn.heard") change(data.turn, (one) => ({ ...one, at, user: data.text }));
            if (frame.event === "turn.sentence") change(data.turn, (one) => ({ ...one, sentences: [...one.sentences,
              data.text] }));
            if (frame.event === "turn.ended") change(data.turn, (one) => ({ ...one, outcome: data.outcome }));
          });
        } catch (fault) {
          if (ending.signal.aborted) return;
          error.value = fault instanceof Problem ? fault : new Problem(0, { code: "unreachable" });
          if (fault instanceof Problem && fault.status >= 400 && fault.status < 500 && fault.status !== 429) return;
        }
        joined.value = false;
        await new Promise((resolve) => setTimeout(resolve, 2_000));
      }
    };
    void run();
    return () => ending.abort();
  }, [mac]);
  useEvents(["tool.called", "turn.answered", "turn.failed", "turn.interrupted", "turn.spoken"], (events) => {
    for (const { device, kind, data } of events) {
      if (device !== mac || !data.turn || !turns.value.some((one) => one.turn === data.turn)) continue;
      if (kind === "tool.called") change(data.turn, (one) => ({ ...one, tools: [...one.tools, data] }));
      else if (kind === "turn.spoken") change(data.turn, (one) => ({ ...one, stages: { ...one.stages,
        ...(data.first_audio_ms ? { first_audio: data.first_audio_ms } : {}) } }));
      else change(data.turn, (one) => ({ ...one, stages: { ...data.stages, ...one.stages }, outcome: one.outcome
        || kind.split(".")[1] }));
    }
  });
  return { turns: turns.value, error: error.value, joined: joined.value };
}

function Transcript({ mac }) {
  const { turns, error, joined } = useTranscript(mac), names = useNames([mac]);
  return html`<${Card} title=${names.get(mac) || html`<span class="mono">${mac}</span>`} aside=${html`<div
    class="row"><${Badge} kind=${joined ? "good" : "warn"} dot>${t(joined ? "live.watching" : "live.joining")}<//><a
    href=${to(["devices", mac])}>${t("query.device")}</a></div>`}>
    <${Fault} error=${error} />
    ${turns.length === 0 && !error ? html`<${Empty} icon="speaker"
      title=${t("live.silent")}>${t("live.silent-about")}<//>` : html`<div class="talk" role="log" aria-live="polite"
      aria-label=${t("live.transcript")}>${turns.map((one) => html`
      <article class="turn" key=${one.turn}>${one.user && html`<div class="said user">${one.user}</div>`}
        ${one.tools.map((tool) => html`<div class="call"><${Icon} name="tool" small /><span
          class="clip">${tool.tool}</span><${Badge} kind=${tool.outcome === "ok" ? "good"
          : "bad"}>${t(`call.${tool.outcome}`)}<//>${tool.ms !== undefined && html`<span
          class="muted">${span(tool.ms)}</span>`}</div>`)}
        ${(one.sentences.length > 0 || !one.outcome) && html`<div class=${classes("said answer", !one.outcome
          && "typing")}>${one.sentences.join(" ")}</div>`}
        ${one.outcome && one.outcome !== "answered" && html`<div><${Badge} kind=${one.outcome === "failed" ? "bad"
          : "warn"}>${t(`turn.${one.outcome}`)}<//></div>`}
        <${Waterfall} stages=${one.stages} /></article>`)}</div>`}<//>`;
}
