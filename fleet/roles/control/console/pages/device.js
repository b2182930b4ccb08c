// One device.
import { ask, attempt, Badge, bound, Button, Card, Confirm, Empty, Field, FormDialog, get, go, Head, html, Loaded,
  may, part, put, say, sayFault, t, Tabs, TextArea, TextInput, Time, to, useEvents, useGet, useLoad, useSignal,
  useWork } from "../kit.js";
import { Commands } from "../parts/commands.js";
import { ConversationList } from "../parts/conversation-list.js";
import { DeviceDesired } from "../parts/device-desired.js";
import { DeviceTalk, DeviceTools } from "../parts/device-calls.js";
import { EventLog } from "../parts/event-log.js";
import { Findings } from "../parts/findings.js";
import { Presence } from "../parts/presence.js";
import { Reminders } from "../parts/reminders.js";
import { STATES } from "./devices.js";

export function Device({ mac, tab = "overview" }) {
  const path = `/devices/${part(mac)}`;
  const device = useGet(path);
  useEvents(["device"], (events) => {
    if (events.some((one) => one.device === mac || !one.device)) device.again();
  }, 500);
  const tabs = [["overview", []], ["desired", ["devices:read"]], ["tools", ["devices:read"]], ["commands", ["devices:read"]], ["findings",
    ["devices:read"]], ["conversations",
    ["conversations:read"]], ["memory",
    ["memory:read"]], ["presence", ["devices:read"]], ["events", ["events:read"]]]
    .filter(([, scopes]) => may(.../** @type {string[]} */ (scopes)))
    .map(([name]) => [name, t(`device.tab.${name}`), to(["devices", mac, .../** @type {any} */ (name === "overview"
      ? [] : [name])])]);
  return html`<${Loaded} of=${device}>${(found) => html`
    <${Head} title=${found.name || found.mac} back=${{ path: ["devices"], name: t("page.devices") }}>
      <${Badge} kind=${found.online ? "good" : ""} dot>${t(found.online ? "online" : "offline")}<//>
      ${found.state !== "bound" && html`<${Badge} kind=${STATES[found.state]}>${t(`state.${found.state}`)}<//>`}
      ${may("conversations:read") && html`<a class="button" href=${to(["live"],
        { device: mac })}>${t("device.listen")}</a>`}
      <${Decisions} device=${found} path=${path} again=${device.again} /><//>
    <${Tabs} label=${t("device.parts")} tabs=${tabs} current=${tab} />
    ${tab === "overview" && html`<${Overview} device=${found} path=${path} set=${device.set} />`}
    ${tab === "desired" && html`<${DeviceDesired} path=${path} />`}
    ${tab === "tools" && html`<${DeviceTools} device=${found} path=${path} />`}
    ${tab === "commands" && html`<${Commands} path=${path} mac=${found.mac} />`}
    ${tab === "findings" && html`<${Findings} path=${path} />`}
    ${tab === "conversations" && html`<${ConversationList} query=${{ device: mac }} />`}
    ${tab === "memory" && html`<div class="stack"><${Reminders} path=${path} /><${Memory}
      path=${path} /></div>`}
    ${tab === "presence" && html`<${Presence} path=${path} online=${found.online} />`}
    ${tab === "events" && html`<${EventLog} device=${mac} />`}`}<//>`;
}

const FACTS = ["mac", "serial", "board", "firmware", "language", "client"];

function Overview({ device, path, set }) {
  const editing = useSignal(false);
  return html`<div class="columns"><div class="stack">
    <${DeviceTalk} device=${device} path=${path} />
    ${may("devices:read") && html`<${Presence} path=${path} online=${device.online} brief />`}</div>
    <div class="stack"><${Card} title=${t("device.about")} aside=${may("devices:write") && html`<${Button}
      kind="quiet" icon="edit" label=${t("edit")} onClick=${put(editing, true)} />`}>
      <dl class="facts">${FACTS.filter((name) => device[name]).map((name) => html`<dt>${t(`query.${name}`)}</dt><dd
        class=${name === "mac" || name === "client" ? "mono" : ""}>${device[name]}</dd>`)}
        ${["last_seen", "last_boot", "first_seen"].map((name) => html`<dt>${t(`query.${name}`)}</dt><dd><${Time}
          at=${device[name]} /></dd>`)}
        <dt>${t("query.tags")}</dt><dd class="row tight">${Object.entries(device.tags).map(([key, value]) => html`<a
          class="tag" href=${to(["devices"],
          { filter: `tag.${key}="${value}"` })}>${key}=${value}</a>`)}${Object.keys(device.tags).length === 0
          && html`<span class="muted">–</span>`}</dd></dl>
      ${device.notes && html`<p class="wrap" style=${{ marginTop: "12px",
        whiteSpace: "pre-wrap" }}>${device.notes}</p>`}
      ${Object.keys(device.attributes).length > 0 && html`<details style=${{ marginTop: "12px" }}>
        <summary>${t("device.attributes")}</summary><pre class="code" tabindex="0">${JSON.stringify(device.attributes,
        null, 2)}</pre></details>`}<//>
      ${may("agents:read") && html`<${AgentOf} device=${device} />`}</div></div>
    ${editing.value && html`<${Edit} device=${device} path=${path} onClose=${put(editing, false)}
      set=${set} />`}`;
}

function Edit({ device, path, onClose, set }) {
  const name = useSignal(device.name), notes = useSignal(device.notes);
  const tags = useSignal(Object.entries(device.tags).map(([key, value]) => `${key}=${value}`).join("\n"));
  const work = useWork(async () => {
    const pairs = tags.value.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]);
    const before = { name: device.name, notes: device.notes, tags: device.tags };
    const after = await ask(`PATCH ${path}`, { body: { name: name.value, notes: notes.value,
      tags: Object.fromEntries(pairs) }, version: device.version });
    set(after);
    say(t("saved"), { undo: async () => set(await ask(`PATCH ${path}`, { body: before,
      version: after.version }).catch(sayFault) ?? after) });
    onClose();
  });
  return html`<${FormDialog} title=${t("device.edit")} onClose=${onClose} work=${work}
    action=${t("save")}>
    <${Field} label=${t("query.name")}><${TextInput} ...${bound(name)} autofocus /><//>
    <${Field} label=${t("query.tags")} hint=${t("device.tags-hint")}><${TextArea} class="mono" rows="4"
      ...${bound(tags)} /><//>
    <${Field} label=${t("query.notes")}><${TextArea} rows="4" ...${bound(notes)} /><//><//>`;
}

/** Whose agent answers on this device. */
function AgentOf({ device }) {
  const agents = useLoad(async (signal) => (await get("/agents", { limit: 300 }, signal)).items, []);
  const busy = useSignal(false);
  const give = async (id) => {
    busy.value = true;
    await attempt(async () => {
      if (id) await ask(`POST /agents/${id}:assign`, { body: { device: device.mac } });
      else await ask("POST /assignments:remove", { body: { device: device.mac } });
      say(t("device.agent-given"));
    });
    busy.value = false;
  };
  return html`<${Card} title=${t("query.agent")}><p>${device.agent ? html`<strong>${device.agent}</strong>`
    : html`<span class="muted">${t("device.agent-site")}</span>`}</p>
    ${may("agents:write") && agents.data && (agents.data.length ? html`<form class="row"
      style=${{ marginTop: "12px" }}
      onSubmit=${(event) => { event.preventDefault(); void give(event.currentTarget.elements.agent.value); }}>
      <select class="input grow" name="agent" aria-label=${t("device.agent-choose")}><option
        value="">${t("device.agent-none")}</option>${agents.data.map((one) => html`<option key=${one.id}
        value=${one.id} selected=${one.name === device.agent}>${one.name}</option>`)}</select>
      <${Button} type="submit" busy=${busy.value}>${t("assign")}<//></form>` : html`<p class="muted small"><a
        href=${to(["agents"])}>${t("device.agent-make")}</a></p>`)}<//>`;
}

/** What is decided about a device: who owns it, and whether it may connect. */
function Decisions({ device, path, again }) {
  const open = useSignal("");
  if (!may("devices:write")) return null;
  const run = (verb, body) => async () => {
    await ask(`POST ${path}:${verb}`, { body });
    say(t("done"));
    if (verb === "forget") go(["devices"]);
    else again();
  };
  const verbs = [device.state === "revoked" ? "unrevoke" : "revoke", ...(device.state === "bound" ? ["unbind"] : []),
    "debug", "forget"];
  const tail = device.mac.slice(-5);
  const close = (event) => {
    const menu = event.currentTarget.closest("details");
    menu.querySelector("summary").focus();
    menu.open = false;
  };
  return html`<details class="menu" onKeyDown=${(event) => { if (event.key === "Escape") close(event); }}
    onFocusOut=${(event) => { if (!event.currentTarget.contains(event.relatedTarget)) event.currentTarget.open = false; }}>
    <summary class="button">${t("device.more")}</summary><div class="menu-list">${verbs.map((verb) => html`
      <button type="button" key=${verb} class=${verb === "revoke" || verb === "forget" || verb === "unbind" ? "bad"
        : ""} onClick=${(event) => { close(event); open.value = verb; }}>${t(`device.${verb}`)}</button>`)}</div></details>
    ${open.value && html`<${Confirm} title=${t(`device.${open.value}`)} action=${t(`device.${open.value}`)}
      typed=${["revoke", "forget", "unbind"].includes(open.value) ? tail : undefined}
      run=${run(open.value, open.value === "debug" ? { minutes: 10 } : undefined)}
        onClose=${put(open, "")}><p>${t(`device.${open.value}-about`)}</p><//>`}`;
}

function Memory({ path }) {
  const facts = useGet(`${path}/memory`), clearing = useSignal(false);
  const forget = async (fact) => {
    await attempt(async () => {
      await ask(`POST ${path}/memory:forget`, { body: { facts: [fact] } });
      say(t("memory.forgotten"));
      facts.again();
    });
  };
  return html`<${Loaded} of=${facts}>${({ items }) => html`<${Card} title=${t("device.tab.memory")}
    aside=${items.length > 0 && may("memory:write") && html`<${Button} kind="danger" icon="trash"
    onClick=${put(clearing, true)}>${t("memory.clear")}<//>`}>
    ${items.length === 0 ? html`<${Empty} icon="chat" title=${t("memory.none")}>${t("memory.none-about")}<//>`
      : html`<ul class="stack tight">${items.map((fact) => html`
      <li class="row apart" key=${fact}><span class="grow wrap">${fact}</span>${may("memory:write") && html`<${Button}
        kind="quiet" icon="trash" label=${t("memory.forget", { fact })} onClick=${() => forget(fact)}
        />`}</li>`)}</ul>`}<//>
    ${clearing.value && html`<${Confirm} title=${t("memory.clear")} action=${t("memory.clear")}
      run=${async () => { await ask(`DELETE ${path}/memory`); facts.again(); }}
      onClose=${put(clearing, false)}><p>${t("memory.clear-about")}</p><//>`}`}<//>`;
}
