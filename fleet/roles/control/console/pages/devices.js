// All devices: a query, what it finds, and what is done with all of it.
import { ago, Badge, Button, Card, Empty, Fault, get, go, Head, html, Icon, LinkButton, Loading, may, number,
  put, save, t, to, useEffect, useEvents, useLayoutEffect, useMemo, useNone, useRef, useSignal } from "../kit.js";
import { AddDevice, Waiting } from "../parts/admit.js";
import { both, Filter, quoted } from "../parts/filter.js";
import { Device } from "./device.js";
import { VirtualRows } from "../parts/rows.js";
import { Windows } from "../parts/windows.js";

const FIELDS = "mac,name,board,firmware,online,state,tags,last_seen";
const FACETS = ["online", "state", "board", "firmware"];
/** Each is two words of a query, which has at most 60. */
const MOST_MARKED = 30;
/** The last list stays, so that one comes back to where one was. */
let kept = /** @type {{key: string, windows: Windows}|null} */ (null);

export const STATES = { registered: "", waiting: "warn", bound: "", refused: "bad", revoked: "bad" };

/** A list for a query; what is shown stays until the first page of the new one is there. */
function useWindows(filter, sort) {
  const key = JSON.stringify([filter, sort]);
  const shown = useSignal(kept?.key === key ? kept.windows : null), latest = useRef(/** @type {Windows|null} */ (null));
  const turn = useSignal(0);
  const wanted = useMemo(() => {
    if (kept?.key === key && turn.value === 0) return kept.windows;
    latest.current?.close();
    return new Windows("/devices", { filter, sort, fields: FIELDS });
  }, [key, turn.value]);
  latest.current = wanted;
  wanted.version.value;
  useEffect(() => {
    if (!wanted.known && !wanted.done) wanted.show(0, 0);
    if (wanted.known || wanted.done) {
      shown.value = wanted;
      kept = { key, windows: wanted };
    }
  }, [wanted, wanted.version.value]);
  return { windows: shown.value, error: wanted.error.value, retry: () => wanted.retry(),
    again: () => { kept = null; turn.value += 1; } };
}

function useFacets(filter) {
  const found = useNone();
  useEffect(() => {
    const ending = new AbortController();
    get("/devices:counts", { by: FACETS.join(), filter }, ending.signal).then(
      (answer) => { found.value = Object.fromEntries(answer.items.map((one) => [one.field, one])); },
        () => { if (!ending.signal.aborted) found.value = null; });
    return () => ending.abort();
  }, [filter]);
  const online = found.value?.online;
  return { facets: found.value, total: online ? Object.values(online.values).reduce((sum, one) => sum + one, 0) : 0,
    complete: online?.complete ?? false };
}

export const DeviceState = ({ device }) => device.state && device.state !== "bound" && device.state !== "registered"
  ? html`<${Badge} kind=${STATES[device.state]}>${t(`state.${device.state}`)}<//>`
  : html`<${Badge} kind=${device.online ? "good" : ""} dot>${t(device.online ? "online" : "offline")}<//>`;

const Row = ({ device, marked }) => html`
  <div role="gridcell" data-mark><input type="checkbox" tabindex="-1" checked=${marked} aria-label=${t("devices.mark",
    { name: device.name || device.mac })} /></div>
  <div role="gridcell" class="clip"><span class="name">${device.name || device.mac}</span><div
    class="sub clip">${device.name ? device.mac : device.board} · ${device.firmware || "–"}</div></div>
  <div role="gridcell" class="mono mac-cell clip">${device.mac}</div>
  <div role="gridcell"><${DeviceState} device=${device} /></div>
  <div role="gridcell" class="clip board-cell">${device.board || "–"}</div>
  <div role="gridcell" class="clip number version-cell">${device.firmware || "–"}</div>
  <div role="gridcell" class="clip tags-cell">${Object.entries(device.tags ?? {}).slice(0, 3).map(([key,
    value]) => html`<span class="tag">${key}=${value}</span> `)}</div>
  <div role="gridcell" class="clip muted small seen-cell">${device.last_seen ? ago(device.last_seen)
    : t("never")}</div>`;

const Sort = ({ name, sort, onSort, children }) => html`<button type="button" aria-pressed=${String(sort === name)}
  onClick=${() => onSort(name)}>${children}
  ${sort === name && html`<${Icon} name="down" small />`}</button>`;

function Facet({ field, counts, filter, onQuery }) {
  const values = Object.entries(counts?.values ?? {});
  const most = Math.max(1, ...values.map(([, count]) => count));
  return html`<${Card} title=${t(`query.${field}`)}><div class="bars">${values.slice(0, 8).map(([value, count]) => html`
    <a key=${value} href=${to(["devices"], { filter: both(filter, value ? `${field}=${quoted(value)}`
      : `${field}=""`) })} onClick=${(event) => { event.preventDefault(); onQuery(both(filter, value
      ? `${field}=${quoted(value)}` : `${field}=""`)); }}>
      <span class="fill" style=${{ position: "absolute", width: `${(count / most) * 100}%` }}></span><span
        class="clip">${value || t("none")}</span><span class="number muted">${number(count)}${counts.complete ? ""
        : "+"}</span></a>`)}
    ${values.length === 0 && html`<p class="muted">${t("none")}</p>`}</div><//>`;
}

function List({ query }) {
  const filter = query.filter ?? "", sort = query.sort ?? "mac";
  const { windows, error, retry, again } = useWindows(filter, sort);
  const { facets, total, complete } = useFacets(filter);
  const marked = useSignal(/** @type {Map<string, any>} */ (new Map())), all = useSignal(false),
    open = useSignal(false), adding = useSignal(false);
  const height = useHeight();
  useLayoutEffect(() => { marked.value = new Map(); all.value = false; }, [filter]);
  useEvents(["device.online", "device.offline", "device.registered", "device.bound"], (events) => {
    if (events.some((one) => one.kind === "gap" || one.kind === "events.lost")) return again();
    const online = new Map(events.filter((one) => one.kind.endsWith("line")).map((one) => [one.device, one]));
    if (online.size) windows?.patch((row) => {
      const event = online.get(row.mac);
      return event ? { ...row, online: event.kind === "device.online", last_seen: event.at } : row;
    });
  }, 250);
  const change = (more) => go(["devices"], { filter, sort: sort === "mac" ? "" : sort, ...more });
  const onQuery = (wanted) => (wanted === filter ? again() : change({ filter: wanted }));
  const mark = (row) => {
    const after = new Map(marked.value);
    if (!after.delete(row.mac) && after.size < MOST_MARKED) after.set(row.mac, row);
    all.value = false;
    marked.value = after;
  };
  const meant = all.value ? filter : [...marked.value.keys()].map((mac) => `mac=${mac}`).join(" OR ");
  const count = all.value ? total : marked.value.size;
  const chip = (name, condition, amount) => html`<button type="button" class="chip" key=${name}
    aria-pressed=${String(filter === condition)} onClick=${() => onQuery(filter === condition ? ""
    : condition)}>${name}${amount !== undefined && html` <span class="number">${number(amount)}</span>`}</button>`;
  const none = windows && windows.known === 0 && windows.done;
  return html`
    <${Head} title=${t("page.devices")} about=${total ? t(complete ? "devices.count" : "devices.count-least",
      { count: number(total) }) : undefined}>
      ${may("devices:write") && html`<${Button} icon="plus" kind="main-action"
        onClick=${put(adding, true)}>${t("devices.add")}<//>`}<//>
    <${Waiting} />
    <${Filter} value=${filter} error=${error} onQuery=${onQuery}>
      <${Button} icon="usage" label=${t("devices.breakdown")} aria-pressed=${String(open.value)}
        onClick=${() => { open.value = !open.value; }} /><//>
    <div class="chips" role="group" aria-label=${t("filter.quick")}>${chip(t("online"), "online", filter ? undefined
      : facets?.online?.values.true)}${chip(t("offline"), "online=false", filter ? undefined
      : facets?.online?.values.false)}
      ${["waiting", "refused", "revoked"].filter((one) => !filter ? facets?.state?.values[one]
        : filter === `state=${one}`).map((one) => chip(t(`state.${one}`), `state=${one}`, facets?.state?.values[one]))}
      ${chip(t("devices.silent"), "online=false last_seen<-7d")}</div>
    ${open.value && facets && html`<div class="cards">${FACETS.slice(1).map((field) => html`<${Facet} key=${field}
      field=${field} counts=${facets[field]} filter=${filter} onQuery=${onQuery} />`)}</div>`}
    ${error && error.code !== "bad-filter" && html`<${Fault} error=${error} retry=${retry} />`}
    ${none ? html`<${Card}>${filter ? html`<${Empty} icon="search" title=${t("devices.none-found")}
      action=${html`<${Button}
      onClick=${() => onQuery("")}>${t("filter.clear")}<//>`}>${t("devices.none-found-about")}<//>`
      : html`<${Empty} icon="devices" title=${t("devices.none")} action=${may("devices:write") && html`<${Button}
        kind="main-action" icon="plus"
        onClick=${put(adding, true)}>${t("devices.add")}<//>`}>${t("devices.none-about")}<//>`}<//>`
    : !windows ? (error ? null : html`<${Card} flush><${Loading} /><//>`) : html`<section class="card flush grid">
      <div class="cells heads" role="group" aria-label=${t("devices.sort")}><span></span>
        <span class="row tight"><${Sort} name="name" sort=${sort}
          onSort=${(one) => change({ sort: one })}>${t("query.name")}<//></span>
        <span class="mac-cell"><${Sort} name="mac" sort=${sort}
          onSort=${() => change({ sort: "" })}>${t("query.mac")}<//></span>
        <span>${t("query.state")}</span><span class="board-cell">${t("query.board")}</span><span
          class="version-cell">${t("query.firmware")}</span><span class="tags-cell">${t("query.tags")}</span>
        <span class="seen-cell"><${Sort} name="-last_seen" sort=${sort}
          onSort=${(one) => change({ sort: one })}>${t("query.last_seen")}<//></span></div>
      <${VirtualRows} windows=${windows} total=${complete ? total : 0} label=${t("page.devices")} height=${height}
        begin=${Number(query.at ?? 0)}
        draw=${(device) => html`<${Row} device=${device} marked=${all.value || marked.value.has(device.mac)} />`}
          marked=${(device) => all.value || marked.value.has(device.mac)}
        open=${(device) => go(["devices", device.mac])} mark=${mark} onTop=${(index) => keepPlace(index, filter,
          sort)} />
      <div class="foot"><span>${t(windows.done ? "devices.loaded-all" : "devices.loaded",
        { count: number(windows.known) })}</span>
        <button type="button" class="button quiet"
          onClick=${() => { all.value = !all.value; marked.value = new Map(); }}>${t(all.value ? "devices.mark-none"
          : "devices.mark-all")}</button></div></section>`}
    ${count > 0 && html`<div class="bulk" role="region" aria-label=${t("devices.bulk")}><strong
      class="grow">${t("devices.marked", { count: number(count) })}</strong>
      ${may("devices:read") && html`<${Button} icon="save" kind="quiet" onClick=${() => save("/devices:export",
        "devices.csv", { filter: meant, format: "csv" })}>${t("export")}<//>`}
      ${may("groups:write") && html`<${LinkButton} icon="groups" href=${to(["groups"], { make: 1,
        query: meant })}>${t("devices.to-group")}<//>`}
      ${may("jobs:write") && html`<${LinkButton} icon="jobs" kind="main-action" href=${to(["jobs"], { make: 1,
        query: meant })}>${t("devices.to-job")}<//>`}
      <${Button} kind="quiet" icon="close" label=${t("devices.mark-none")}
        onClick=${() => { all.value = false; marked.value = new Map(); }} /></div>`}
    ${adding.value && html`<${AddDevice} onClose=${() => { adding.value = false; again(); }} />`}`;
}

let placing = 0;
/** Keep the place of the list in the address, without a new entry of the history, unless one has gone on meanwhile. */
function keepPlace(index, filter, sort) {
  const before = location.hash;
  clearTimeout(placing);
  placing = setTimeout(() => {
    if (location.hash === before && /^#\/devices(\?|$)/.test(before)) history.replaceState(null, "", to(["devices"], { filter,
      sort: sort === "mac" ? "" : sort, at: index || "" }));
  }, 300);
}

/** Rows are taller on a phone, where they have two lines. */
function useHeight() {
  const narrow = useMemo(() => matchMedia("(max-width: 860px)"), []);
  const height = useSignal(narrow.matches ? 60 : 44);
  useEffect(() => {
    const change = () => { height.value = narrow.matches ? 60 : 44; };
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return height.value;
}

export default function Devices({ parts, query }) {
  return parts.length ? html`<${Device} key=${parts[0]} mac=${parts[0]} tab=${parts[1]} />` : html`<${List} query=${query} />`;
}
