// What is said with a device, word by word, with calls of tools and where the time of each turn went.
import { authorized, Badge, Card, classes, Empty, Fault, frames, html, Icon, part, Problem, refusing, span, t, to,
  useEffect, useEvents, useNames, useNone, useSignal } from "../kit.js";

/** @param {Record<string, number>} stages in milliseconds, each from the end of hearing on, but for `heard` and `first_audio` */
export function lanes(stages) {
  const heard = stages.heard ?? 0;
  const token = stages.first_token !== undefined ? heard + stages.first_token : undefined;
  const sentence = stages.first_sentence !== undefined ? heard + stages.first_sentence : undefined;
  const points = /** @type {[string, number, number|undefined][]} */ ([["hear", 0, heard || undefined], ["think",
    heard, token], ["write", token ?? heard, sentence],
    ["speak", sentence ?? token ?? heard, stages.first_audio]]);
  return points.filter(([, from, until]) => until !== undefined && until > from).map(([name, from, until]) => ({ name,
    from, until: /** @type {number} */ (until) }));
}

export function Waterfall({ stages }) {
  const found = lanes(stages), end = Math.max(1, ...found.map((one) => one.until));
  if (!found.length) return null;
  return html`<div class="water"><div class="lane" role="img"
    aria-label=${found.map((one) => `${t(`stage.${one.name}`)} ${span(one.until - one.from)}`).join(", ")}>
    ${found.map((one) => html`<i key=${one.name} class=${one.name}
      style=${{ width: `${((one.until - one.from) / end) * 100}%` }}></i>`)}</div>
    <div class="legend">${found.map((one) => html`<span key=${one.name}><i class=${one.name}>
      </i>${t(`stage.${one.name}`)} <span class="number">${span(one.until - one.from)}</span></span>`)}</div></div>`;
}

function useTranscript(mac) {
  const turns = useSignal(/** @type {any[]} */ ([])), error = useNone(),
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
          const refuse = refusing();
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

/** Chinese has no space between two sentences. @param {string[]} sentences */
const text = (sentences) => sentences.join(" ").replace(/([，。！？；：]) /g, "$1");

export function Transcript({ mac }) {
  const { turns, error, joined } = useTranscript(mac), names = useNames([mac]);
  return html`<${Card} title=${names.get(mac) || html`<span class="mono">${mac}</span>`} aside=${html`<div
    class="row"><${Badge} kind=${joined ? "good" : "warn"} dot>${t(joined ? "live.watching" : "stream.joining")}<//><a
    href=${to(["devices", mac])}>${t("query.device")}</a></div>`}>
    <${Fault} error=${error} />
    ${turns.length === 0 && !error ? html`<${Empty} icon="speaker"
      title=${t("live.silent")}>${t("live.silent-about")}<//>` : html`<div class="talk" role="log" aria-live="polite"
      aria-label=${t("live.transcript")}>${turns.map((one) => html`
      <article class="turn" key=${one.turn}>${one.user && html`<div class="said user">${one.user}</div>`}
        ${one.tools.map((tool) => html`<div class="call"><${Icon} name="tool" small /><span
          class="clip">${tool.tool}</span><${Badge} kind=${tool.outcome === "ok" ? "good"
          : "bad"}>${t(`execution.${tool.outcome}`)}<//>${tool.ms !== undefined && html`<span
          class="muted">${span(tool.ms)}</span>`}</div>`)}
        ${(one.sentences.length > 0 || !one.outcome) && html`<div class=${classes("said answer", !one.outcome
          && "typing")}>${text(one.sentences)}</div>`}
        ${one.outcome && one.outcome !== "answered" && html`<div><${Badge} kind=${one.outcome === "failed" ? "bad"
          : "warn"}>${t(`turn.${one.outcome}`)}<//></div>`}
        <${Waterfall} stages=${one.stages} /></article>`)}</div>`}<//>`;
}
