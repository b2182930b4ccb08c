// Talk to an agent from this page, by voice or in writing.
import { ask, bound, Button, Card, classes, Empty, Fault, Field, get, Head, html, Icon, may, Note, part, Select, t,
  TextInput, textOr, to, useEffect, useList, useMemo, useNone, useRef, useSignal } from "../kit.js";
import { NoVoice, Voice } from "../core/voice.js";

/** Give the page's device an agent, or that of the site. @param {string} agent @param {string} device */
async function assign(agent, device) {
  if (!may("agents:write", "devices:read")) return;
  if (agent) return ask(`POST /agents/${agent}:assign`, { body: { device } });
  // One that its group has counts, too, and cannot be taken away here.
  const before = await get(`/devices/${part(device)}`);
  if (!before.agent) return;
  await ask("POST /assignments:remove", { body: { device } }).catch((error) => {
    if (error.status !== 404) throw error;
  });
}

export default function Talk({ query }) {
  const voice = useMemo(() => new Voice(), []);
  const agent = useSignal(query.agent ?? ""), error = useNone();
  useEffect(() => () => voice.stop(), []);
  const start = async () => {
    error.value = null;
    try {
      await voice.start((device) => assign(agent.value, device));
    } catch (fault) {
      error.value = fault instanceof NoVoice ? { words: t(fault.message) } : fault;
    }
  };
  const state = voice.state.value, off = state === "off";
  const reason = textOr(`voice.ended-${voice.ended.value}`, "");
  return html`<${Head} title=${t("page.talk")} about=${t("voice.about")} />
    <div class="voice"><${Card}><div class="stack">
      ${may("agents:read", "agents:write") && html`<${Choice} ...${bound(agent)} fixed=${!off} />`}
      <div class="voice-state" role="status"><${Level} voice=${voice} />
        <strong>${t(`voice.${state}`)}</strong></div>
      ${voice.deaf.value && !off && html`<${Note} kind="warn">${t(globalThis.isSecureContext ? "voice.deaf" : "voice.insecure")}<//>`}
      <${Fault} error=${error.value ?? (off && voice.ended.value ? { words: t("voice.ended"), detail: reason } : null)} />
      <div class="row">${off ? html`<${Button} kind="main-action" icon="mic" onClick=${start}>${t("voice.start")}<//>`
        : html`<${Button} icon="stop" onClick=${() => voice.stop()}>${t("voice.stop")}<//>`}
        ${state === "speaking" && html`<${Button} kind="quiet" icon="pause" onClick=${() => voice.interrupt()}>${t("voice.hush")}<//>`}</div>
      ${voice.device.value && may("devices:read") && html`<p class="muted small"><a href=${to(["devices", voice.device.value])}>${t("voice.device")}</a></p>`}
    </div><//><${Card} title=${t("voice.said")}><${Said} voice=${voice} off=${off || state === "opening"} /><//></div>`;
}

function Choice({ value, fixed, onValue }) {
  const agents = useList("/agents", { limit: 100 });
  const usable = (agents.data ?? []).filter((one) => one.live);
  return html`<${Field} label=${t("query.agent")} hint=${t("voice.agent-about")}>
    <${Select} value=${value} onValue=${onValue} disabled=${fixed} choices=${[["", t("voice.agent-site")], ...usable.map((one) => [String(one.id), one.name])]} /><//>`;
}

/** How loud the microphone is. */
const Level = ({ voice }) => html`<span class=${classes("voice-level", voice.state.value)} aria-hidden="true"
  style=${{ "--level": String(voice.level.value) }}><${Icon} name="mic" /></span>`;

function Said({ voice, off }) {
  const text = useSignal(""), end = useRef(/** @type {HTMLElement|null} */ (null)), lines = voice.lines.value;
  useEffect(() => { end.current?.scrollIntoView({ block: "nearest" }); }, [lines]);
  const send = (event) => {
    event.preventDefault();
    voice.type(text.value.trim());
    text.value = "";
  };
  return html`<div class="stack">${lines.length ? html`<div class="talk" role="log" aria-label=${t("voice.said")}>
      ${lines.map((line, at) => html`<div key=${at} class=${classes("said", line.who)}>${line.text}</div>`)}<i ref=${end}></i></div>`
    : html`<${Empty} icon="chat" title=${t("voice.nothing")}>${t("voice.nothing-about")}<//>`}
    ${!off && html`<form class="form" onSubmit=${send}><${Field} label=${t("voice.type")}>
      <${TextInput} required maxlength="1000" ...${bound(text)} /><//>
      <div class="actions"><${Button} type="submit">${t("send")}<//></div></form>`}</div>`;
}
