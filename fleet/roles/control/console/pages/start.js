// Leads through a new server: owner, models, language, the first device, the first conversation.
import { ask, Badge, bound, Button, Card, Empty, Fault, Field, get, go, Head, html, LinkButton, Loaded, Loading, may,
  me, Note, put, say, Select, span, t, TextInput, Time, to, useEffect, useEvents, useLayoutEffect, useLoad, useNames, useNone, useSignal, useWork } from
  "../kit.js";
import { AddDevice, Waiting } from "../parts/admit.js";
import { slim } from "../parts/agent-editor.js";
import { Ask } from "../parts/job-state.js";
import { ProviderForm, ProviderTest } from "../parts/provider.js";
import { QrCode } from "../parts/qr.js";
import { Transcript } from "../parts/transcript.js";
import { siteAgent, skip, skipped, STEPS, useStart } from "../parts/start.js";

const KINDS = ["chat", "recognition", "voice"];
const NAME = "default";
/** Seconds for which devices that come later get the time zone, too: the longest life of a job. */
const LIFE = 90 * 86_400;

/**
 * Prepare a change of the agent of the whole site, which is made where there is none; `run` publishes it. Until then,
 * the draft can be put back to what it was.
 * @param {object} change @param {(agent: any) => Promise<void>} [check]  if it fails, the draft is what it was
 */
async function changeSiteAgent(change, check) {
  const given = await siteAgent();
  const known = given ?? (await get("/agents", { limit: 500 })).items.find((one) => one.name === NAME);
  const before = slim(known?.draft ?? {}), draft = slim({ ...before, ...change });
  const agent = known ? await ask(`PATCH /agents/${known.id}`, { body: { draft }, version: known.version })
    : await ask("POST /agents", { body: { name: NAME, draft } });
  const path = `POST /agents/${agent.id}`;
  const back = () => ask(`PATCH /agents/${agent.id}`, { body: { draft: before }, version: agent.version });
  try {
    await check?.(agent);
    return { agent, back, of: given ? await ask(`${path}:preview`, { body: {} }) : await ask("POST /assignments:preview",
      { body: { site: true, agent: agent.id } }), run: async (most) => {
      await ask(`${path}:publish`, { query: given && { most } });
      if (!given) await ask(`${path}:assign`, { body: { site: true, most } });
    } };
  } catch (fault) {
    await back();
    throw fault;
  }
}

/**
 * What changes the agent of the site, and asks first if devices have it or get it.
 * @param {(change: any) => Promise<any>} done  what follows
 */
function useSiteChange(done) {
  const sure = useNone();
  const close = () => { if (!sure.value.over) sure.value.back().catch(() => {}); sure.value = null; };
  return { begin: async (change, check) => {
    const { run, ...ready } = await changeSiteAgent(change, check);
    const finish = async (most) => { await run(most); if (sure.value) sure.value.over = true; await done(ready.agent); };
    if (ready.of.changing) sure.value = { ...ready, run: finish };
    else await finish(0);
  }, asked: () => sure.value && html`<${Ask} of=${sure.value.of} run=${sure.value.run} onClose=${close} title=${t(
    "agents.site")} action=${t("agents.publish")} about=${t("start.whom")} />` };
}

/** Whether two names mean one time zone. @param {string} one @param {string} other */
function sameZone(one, other) {
  const [a, b] = [one, other].map((timeZone) => {
    try {
      return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
    } catch {
      return timeZone;
    }
  });
  return a === b;
}

export function OwnerStep({ again }) {
  const name = useSignal(""), password = useSignal("");
  const work = useWork(async () => {
    await ask("POST /accounts", { body: { name: name.value.trim(), password: password.value, role: "owner" } });
    say(t("saved"));
    again();
  });
  if (me.value?.kind === "account") return html`<p>${t("start.owner-is", { name: me.value.name })}</p>`;
  if (!may("accounts:write")) return html`<${Note} kind="warn">${t("tools.no-scope")}<//>`;
  return html`<form class="form" onSubmit=${work.submit}>
    <${Field} label=${t("sign-in.name")} hint=${t("form.name-hint")}><${TextInput} required ...${bound(name)} autocomplete="username" pattern="[A-Za-z0-9._\\-]{1,63}" /><//>
    <${Field} label=${t("sign-in.password")} hint=${t("sign-in.password-hint")}><${TextInput} required type="password"
      autocomplete="new-password" minlength="12" ...${bound(password)} /><//>
    <${Fault} error=${work.error} /><div><${Button} type="submit" kind="main-action"
      busy=${work.busy}>${t("start.owner-make")}<//></div></form>`;
}

export function ModelsStep({ again }) {
  const found = useLoad(async (signal) => ({ providers: (await get("/providers", { limit: 100 }, signal)).items,
    agent: await siteAgent(signal) }), []);
  const adding = useSignal(""), chosen = useSignal(/** @type {Record<string, string>} */ ({})),
    answer = useNone();
  const of = (kind) => (found.data?.providers ?? []).filter((one) => one.kind === kind);
  const choice = (kind) => chosen.value[kind] ?? found.data?.agent?.draft[kind].provider ?? of(kind)[0]?.name ?? "";
  const question = async ({ id }) => {
    answer.value = await ask(`POST /agents/${id}:try`, { body: { text: t("start.question") } });
  };
  const change = useSiteChange(async (agent) => {
    say(t("saved"));
    found.again();
    again();
    if (!choice("chat")) await question(agent);
  });
  const work = useWork(async () => {
    const before = found.data?.agent?.draft ?? {};
    const parts = KINDS.map((kind) => [kind, { ...before[kind], provider: choice(kind) || null }]);
    answer.value = null;
    // No device gets a chat model that does not answer.
    await change.begin(Object.fromEntries(parts), choice("chat") ? question : undefined);
  });
  if (!may("providers:write", "agents:write")) return html`<${Note} kind="warn">${t("tools.no-scope")}<//>`;
  return html`<${Loaded} of=${found}>${() => html`
    ${KINDS.map((kind) => html`<section key=${kind} class="stack tight"><div class="row apart"><h3>${t(
      `agents.provider.${kind}`)}</h3><${Button} icon="plus" aria-label=${t("start.add-of",
      { kind: t(`agents.provider.${kind}`) })} onClick=${() => { adding.value = kind; }}>${t("add")}<//></div>
      ${of(kind).length === 0 ? html`<p class="muted small">${t(`start.none-${kind}`)}</p>`
      : of(kind).map((one) => html`<div class="row apart" key=${one.id}><label class="check"><input type="radio"
        name=${kind} checked=${choice(kind) === one.name} onChange=${() => { chosen.value = { ...chosen.value,
        [kind]: one.name }; }} /><span>${one.name}</span></label><${ProviderTest} provider=${one} /></div>`)}
      </section>`)}
    <${Fault} error=${work.error} />
    ${work.error && choice("chat") && html`<p class="muted small">${t("start.not-used")}</p>`}
    ${answer.value && html`<div class="talk" role="status"><div class="said user">${t("start.question")}</div><div
      class="said answer">${answer.value.text}</div><span class="muted small">${span(answer.value.seconds * 1000)}</span>
      </div>`}
    ${KINDS.some((kind) => of(kind).length) && html`<div><${Button} kind="main-action" icon="play" busy=${work.busy}
      onClick=${work.submit}>${t("start.use-models")}<//></div>`}
    ${adding.value && html`<${ProviderForm} provider=${{ kind: adding.value }} onClose=${put(adding, "")}
      done=${(made) => { chosen.value = { ...chosen.value, [made.kind]: made.name }; found.again(); }} />`}${change.asked()}`}<//>`;
}

export function LanguageStep({ again }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const found = useLoad(async (signal) => ({ agent: await siteAgent(signal), system: may("system:read")
    ? await get("/system", {}, signal) : null }), []);
  const language = useSignal(""), zone = useSignal(own);
  const spoken = language.value || found.data?.agent?.draft.language || "auto";
  const site = found.data?.system?.site.timezone;
  const change = useSiteChange(async () => {
    if (!sameZone(zone.value, site ?? "")) await ask("POST /jobs", { body: { name: t("desired.timezone"), kind: "shadow", query: "",
      continuous: true, supersedes: "start-timezone", shadow: { desired: { timezone: zone.value } },
      policy: { rate: 100, idle: false, expires_seconds: LIFE } } });
    say(t("saved"));
    again();
  });
  const work = useWork(() => change.begin({ language: spoken }));
  if (!may("agents:write", "jobs:write", "devices:command")) return html`<${Note} kind="warn">${t("tools.no-scope")}<//>`;
  if (!found.data) return found.error ? html`<${Fault} error=${found.error} />` : html`<${Loading} />`;
  return html`${change.asked()}<form class="form" onSubmit=${work.submit}>
    <${Field} label=${t("start.spoken")}><${Select} value=${spoken}
      onValue=${(one) => { language.value = one; }} choices=${[...new Set(["auto", "zh", "en", spoken])].map((one) => [one,
      one === "auto" ? t("start.auto") : new Intl.DisplayNames([document.documentElement.lang], { type: "language" }).of(
      one) ?? one])} /><//>
    <${Field} label=${t("desired.timezone")} hint=${site && t("start.zone-hint", { zone: site })}><${TextInput} required
      list="zones" ...${bound(zone)} /><//>
    <datalist id="zones">${Intl.supportedValuesOf("timeZone").map((one) => html`<option key=${one} value=${one}>
      </option>`)}</datalist>
    ${site && !sameZone(zone.value, site) && html`<p class="muted small">${t("start.zone-job", { zone: zone.value })}</p>`}
    <${Fault} error=${work.error} /><div><${Button} type="submit" kind="main-action"
      busy=${work.busy}>${t("save")}<//></div></form>`;
}

const EVENTS = ["device.registered", "device.booted", "device.online", "device.offline", "device.bound"];

/** Devices that were seen last, read again when something happens to one. @param {string} filter */
function useDevices(filter) {
  const found = useLoad(async (signal) => (await get("/devices", { filter, sort: "-last_seen", limit: 5,
    fields: "mac,name,board,online,state,last_seen" }, signal)).items, [filter]);
  useEvents(EVENTS, () => found.again());
  return found;
}

export function DeviceStep() {
  const site = useLoad(async (signal) => (may("system:read") ? (await get("/system", {}, signal)).site : null), []);
  const devices = useDevices("state!=waiting"), adding = useSignal(false), url = site.data?.ota_url ?? "";
  const copy = () => navigator.clipboard.writeText(url).then(() => say(t("copied")));
  return html`<ol class="stages">${["wifi", "address", "code"].map((one, place) => html`<li key=${one}><span
      class="step">${place + 1}</span><div class="grow"><strong>${t(`first.${one}`)}</strong><div
      class="muted">${t(`first.${one}-about`)}</div>
      ${one === "address" && url && html`<div class="row" style=${{ marginTop: "10px" }}><${QrCode} text=${url}
        label=${t("start.qr")} /><div class="stack tight grow"><code class="wrap">${url}</code>
        ${globalThis.isSecureContext && html`<div><${Button} icon="copy" onClick=${copy}>${t("copy")}<//></div>`}
        <p class="muted small">${t("start.ota-hint")}</p></div></div>`}</div></li>`)}</ol>
    <${Fault} error=${site.error ?? devices.error} /><${Waiting} />
    <section class="stack tight" aria-label=${t("start.seen")} aria-live="polite"><h3>${t("start.seen")}</h3>
      ${devices.data?.length ? devices.data.map((one) => html`<div class="row apart" key=${one.mac}><a
        href=${to(["devices", one.mac])}>${one.name || html`<span class="mono">${one.mac}</span>`}</a><div class="row">
        <span class="muted small">${one.board} · <${Time} at=${one.last_seen} /></span><${Badge} kind=${one.online
        ? "good" : ""} dot>${t(one.online ? "online" : "offline")}<//></div></div>`)
      : html`<p class="muted">${t("start.none-seen")}</p>${url && html`<p class="muted small">${t("start.simulate")}
        <code class="wrap">fleet sim --ota ${url} --text Hello</code></p>`}`}</section>
    ${may("devices:write") && html`<div><${Button} icon="plus" onClick=${put(adding, true)}>${t(
      "devices.add")}<//></div>`}
    ${adding.value && html`<${AddDevice} onClose=${put(adding, false)} />`}`;
}

export function TalkStep() {
  const devices = useDevices("online"), chosen = useSignal("");
  const online = (devices.data ?? []).map((one) => one.mac), mac = chosen.value || online[0];
  const macs = [...new Set([...online, mac])], names = useNames(mac ? macs : []);
  // One that hangs up stays, with what was said.
  useEffect(() => { if (mac) chosen.value = mac; }, [mac]);
  const talk = may("devices:command") && html`<${LinkButton} icon="mic" href="#/talk">${t("start.talk-here")}<//>`;
  if (!may("conversations:read")) return html`<${Note} kind="warn">${t("live.no-scope")}<//>`;
  if (!mac) return html`<${Waiting} /><${Empty} icon="devices" title=${t("start.none-online")} action=${talk}>${t(
    "start.none-online-about")}<//>`;
  return html`<div class="row apart"><div class="grow">${macs.length > 1 && html`<${Field} label=${t("query.device")}>
    <${Select} value=${mac} onValue=${(one) => { chosen.value = one; }} choices=${macs.map((one) => [one, names.get(one)
    || one])} /><//>`}</div>${talk}</div><${Transcript} key=${mac} mac=${mac} />`;
}

const SHOWN = { owner: OwnerStep, models: ModelsStep, language: LanguageStep, device: DeviceStep, talk: TalkStep };

export default function Start({ parts }) {
  const state = useStart(), first = state.open[0] ?? "owner";
  // In the address: a step that is done stays where it is until somebody goes on.
  useLayoutEffect(() => { if (state.known && !STEPS.includes(parts[0])) go(["start", first], {}, true); }, [state.known,
    parts[0]]);
  if (!state.known) return state.error ? html`<${Fault} error=${state.error} retry=${state.again} />` : html`<${Loading} />`;
  const step = STEPS.includes(parts[0]) ? parts[0] : first;
  const next = STEPS[STEPS.indexOf(step) + 1], isSkipped = skipped.value.has(step) && !state.done[step];
  const on = () => go(next ? ["start", next] : []);
  const mark = (one) => (state.done[one] ? " ✓" : skipped.value.has(one) ? " –" : "");
  return html`<${Head} title=${t("page.start")} about=${t("start.about")} />
    <nav aria-label=${t("page.start")}><ol class="steps">${STEPS.map((one) => html`<li key=${one}
      class=${state.done[one] ? "done" : ""} aria-current=${one === step ? "step" : undefined}><a
      href=${to(["start", one])}>${t(`start.${one}`)}${mark(one)}</a></li>`)}</ol></nav>
    ${state.open.length === 0 && html`<${Note}>${t("start.ready")} <a href="#/">${t("page.overview")}</a><//>`}
    <${Card} title=${t(`start.${step}-title`)} aside=${state.done[step] ? html`<${Badge} kind="good">${t("done")}<//>`
      : isSkipped && html`<${Badge}>${t("execution.skipped")}<//>`}><div class="stack">
      <p class="muted">${t(`start.${step}-about`)}</p>
      <${SHOWN[step]} key=${step} again=${state.again} />
      <div class="actions">${step !== STEPS[0] && html`<${LinkButton} href=${to(["start",
        STEPS[STEPS.indexOf(step) - 1]])}>${t("back")}<//>`}
        ${!state.done[step] && html`<${Button} kind="quiet" onClick=${() => { skip(step, !isSkipped);
          if (!isSkipped) on(); }}>${t(isSkipped ? "start.unskip" : "start.skip")}<//>`}
        <${Button} kind=${state.done[step] ? "main-action" : ""} onClick=${on}>${t(next ? "next"
          : "start.finish")}<//></div></div><//>`;
}
