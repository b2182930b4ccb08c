// Reading from the API while a part is shown.
import { html, signal, useEffect, useMemo, useNone, useRef, useSignal } from "../core/ui.js";
import { get } from "../core/api.js";
import { t } from "../core/i18n.js";
import { Button, Fault, Loading } from "./basics.js";

/**
 * Read something, and again when `parts` change. What was read stays while it is read again; `again` waits for a read
 * that runs, so that many calls neither stop it nor let many run.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} read @param {any[]} parts
 */
export function useLoad(read, parts) {
  const data = useSignal(/** @type {T|undefined} */ (undefined)), error = useNone();
  const turn = useSignal(0), state = useRef({ runs: false, asked: false });
  useEffect(() => {
    const ending = new AbortController();
    state.current = { runs: true, asked: false };
    read(ending.signal).then(
      (found) => { if (!ending.signal.aborted) { data.value = found; error.value = null; } },
      (fault) => { if (!ending.signal.aborted) error.value = fault; }).finally(() => {
      if (ending.signal.aborted) return;
      const { asked } = state.current;
      state.current = { runs: false, asked: false };
      if (asked) turn.value += 1;
    });
    return () => ending.abort();
  }, [...parts, turn.value]);
  return useMemo(() => ({
    get data() { return data.value; },
    get error() { return error.value; },
    set: (value) => { data.value = value; },
    again: () => {
      if (state.current.runs) state.current.asked = true;
      else turn.value += 1;
    },
  }), []);
}

/** Read one path. @param {string} path @param {object} [query] */
export const useGet = (path, query) => useLoad((signal) => get(path, query, signal), [path, JSON.stringify(query)]);

/** What was read, or why not, or that it is not there yet. */
export function Loaded({ of, children }) {
  if (of.data === undefined) return of.error ? html`<${Fault} error=${of.error} retry=${of.again} />`
    : html`<${Loading} />`;
  return html`${of.error && html`<${Fault} error=${of.error} retry=${of.again} />`}${children(of.data)}`;
}

/** A list that is read page by page. @param {string} path @param {Record<string, any>} [query] */
export function useList(path, query = {}) {
  const more = useSignal(/** @type {any[]} */ ([])), next = useSignal(/** @type {string|null} */ (null));
  const busy = useSignal(false), error = useNone();
  const first = useLoad(async (signal) => {
    const page = await get(path, query, signal);
    more.value = [];
    next.value = page.next;
    return page.items;
  }, [path, JSON.stringify(query)]);
  const on = async () => {
    if (!next.value || busy.value) return;
    busy.value = true;
    try {
      const page = await get(path, { ...query, cursor: next.value });
      more.value = [...more.value, ...page.items];
      next.value = page.next;
      error.value = null;
    } catch (fault) {
      error.value = fault;
    }
    busy.value = false;
  };
  return {
    get data() { return first.data && [...first.data, ...more.value]; },
    get error() { return first.error ?? error.value; },
    get next() { return next.value; },
    busy, again: first.again, on,
  };
}

export const More = ({ of }) => of.next && html`<div class="more"><${Button} busy=${of.busy.value}
  onClick=${of.on}>${t("more")}<//></div>`;

/** A query has at most 60 words, and half of them are `OR`. */
const AT_ONCE = 30;
/** Names that are kept, those that came last. */
const MOST_NAMES = 2_000;
const known = signal(/** @type {Map<string, string>} */ (new Map()));
let asking = false;

/**
 * Return the names that are known by now, by MAC. The others are asked for by one request after the other, each for what
 * is shown then: a list that changes all the time asks no more often.
 * @param {string[]} macs
 */
export function useNames(macs) {
  const names = known.value;
  useEffect(() => {
    const missing = [...new Set(macs)].filter((mac) => !names.has(mac)).slice(0, AT_ONCE);
    if (asking || !missing.length) return;
    asking = true;
    get("/devices", { filter: missing.map((mac) => `mac=${mac}`).join(" OR "), fields: "mac,name",
      limit: AT_ONCE }).then(({ items }) => {
      asking = false;
      // A device that is not there has no name either.
      known.value = new Map([...known.value, ...missing.map((mac) => [mac, ""]),
        ...items.map((one) => [one.mac, one.name])].slice(-Math.max(MOST_NAMES, 4 * macs.length)));
    }, () => { asking = false; });
  }, [macs.join(), names]);
  return names;
}
