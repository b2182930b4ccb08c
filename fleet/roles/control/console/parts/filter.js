// The line in which a query for devices is written: it suggests fields and values, and shows where an error is.
import { Button, get, html, Icon, t, useLayoutEffect, useRef, useSignal } from "../kit.js";

const FIELDS = ["online", "board", "firmware", "state", "name", "mac", "serial", "agent", "group", "tool", "language",
  "notes", "last_seen", "last_boot", "first_seen"];
const OPERATORS = { firmware: ["<", ">=", "="], last_seen: [">", "<"], last_boot: [">", "<"], first_seen: [">", "<"],
  online: [""] };
const FIXED = { state: ["registered", "waiting", "bound", "refused", "revoked"], last_seen: ["-1h", "-1d", "-7d",
  "-30d"], last_boot: ["-1h", "-1d", "-7d"], first_seen: ["-1d", "-7d", "-30d"] };

/** A value as a query writes it. @param {string} value */
export const quoted = (value) => (/^[\w.:-]+$/.test(value) ? value : `"${value.replace(/(["\\])/g, "\\$1")}"`);

/** Both conditions. @param {string} query @param {string} condition */
export function both(query, condition) {
  if (!query.trim()) return condition;
  return `${/\bOR\b/.test(query) ? `(${query.trim()})` : query.trim()} AND ${condition}`;
}

/** Asks for the values of fields once. */
const values = new Map();
async function valuesOf(field) {
  if (FIXED[field]) return FIXED[field];
  if (!["board", "firmware", "language", "agent"].includes(field) && !field.startsWith("tag.")) return [];
  if (!values.has(field)) values.set(field, get("/devices:counts",
    { by: field }).then((found) => Object.keys(found.items[0].values).filter(Boolean), () => []));
  return values.get(field);
}

async function suggestions(text, caret) {
  const word = /[^\s()]*$/.exec(text.slice(0, caret))?.[0] ?? "";
  const bare = word.replace(/^-/, "");
  const [, field, operator, begun] = /^([\w.]+)(<=|>=|!=|=|<|>|:)(.*)$/.exec(bare) ?? [];
  const head = text.slice(0, caret - bare.length);
  const rest = text.slice(caret);
  if (field) {
    const found = (await valuesOf(field)).filter((one) => one.toLowerCase().includes(begun.replaceAll('"',
      "").toLowerCase()));
    return found.slice(0, 12).map((one) => ({ shown: one, text: `${head}${field}${operator}${quoted(one)} `, rest }));
  }
  return FIELDS.filter((one) => one.startsWith(bare.toLowerCase())).slice(0,
    12).flatMap((one) => (OPERATORS[one] ?? ["="]).slice(0, 1).map((sign) => ({
    shown: `${one}${sign}`, about: t(`query.${one}`), text: `${head}${one}${sign}${sign ? "" : " "}`, rest,
      on: Boolean(sign) })));
}

/**
 * @param {{value: string, error: any, onQuery: (query: string) => void, children?: any, label?: string,
 *   action?: string, eager?: boolean}} props  error: what the server said of the query; action: what the button does, if
 *   not find; eager: whoever leaves the line means what he typed, as in a form, whose button is another one
 */
export function Filter({ value, error, onQuery, children, label, action, eager }) {
  const text = useSignal(value), shown = useSignal(/** @type {any[]} */ ([])), chosen = useSignal(-1);
  const box = useRef(/** @type {HTMLInputElement|null} */ (null)), asked = useRef(0);
  // Before anybody can type: an effect after the paint would take back the first letters.
  useLayoutEffect(() => { text.value = value; }, [value]);
  const fault = error?.code === "bad-filter" && error.errors?.[0];
  const suggest = async () => {
    const turn = (asked.current += 1);
    const found = await suggestions(text.value, box.current?.selectionStart ?? text.value.length);
    if (turn !== asked.current) return;
    shown.value = found;
    chosen.value = -1;
  };
  const close = () => { asked.current += 1; shown.value = []; };
  const commit = (query) => { close(); text.value = query; onQuery(query.trim()); };
  const take = (one) => {
    text.value = one.text + one.rest;
    box.current?.focus();
    requestAnimationFrame(() => { box.current?.setSelectionRange(one.text.length,
      one.text.length); if (one.on) void suggest(); });
    close();
  };
  const key = (event) => {
    const count = shown.value.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) return void suggest();
      chosen.value = (chosen.value + (event.key === "ArrowDown" ? 1 : -1) + count) % count;
      document.getElementById(`suggest-${chosen.value}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Escape" && count) {
      event.stopPropagation();
      close();
    } else if ((event.key === "Enter" || event.key === "Tab") && count && chosen.value >= 0) {
      event.preventDefault();
      take(shown.value[chosen.value]);
    }
  };
  return html`<form class="filter" role="search" onSubmit=${(event) => { event.preventDefault(); commit(text.value); }}
      onFocusOut=${(event) => { if (event.currentTarget.contains(event.relatedTarget)) return; if (eager) commit(text.value); else close(); }}>
    <div class="line"><div class="box"><${Icon} name="search" />
      <input ref=${box} class="input" type="text" role="combobox" aria-label=${label ?? t("filter.label")}
        aria-expanded=${String(shown.value.length > 0)} aria-controls="suggest" aria-autocomplete="list"
        aria-activedescendant=${chosen.value >= 0 ? `suggest-${chosen.value}` : undefined} aria-invalid=${fault
          ? "true" : undefined} aria-describedby=${fault ? "filter-fault" : undefined}
        autocomplete="off" spellcheck=${false} placeholder=${t("filter.placeholder")} value=${text.value}
        onInput=${(event) => { text.value = event.currentTarget.value; void suggest(); }} onKeyDown=${key} />
      <ul class="suggest" id="suggest" role="listbox" aria-label=${t("filter.suggestions")}
        hidden=${!shown.value.length}>${shown.value.map((one, place) => html`
        <li key=${one.shown} id=${`suggest-${place}`} role="option" aria-selected=${String(place === chosen.value)}
          onMouseDown=${(event) => { event.preventDefault(); take(one); }}><code>${one.shown}</code><span
          class="muted small clip">${one.about}</span></li>`)}</ul></div>
      <${Button} type="submit">${action ?? t("filter.go")}<//>${children}</div>
    ${fault && html`<div id="filter-fault" role="alert"><div class="where"
      aria-hidden="true">${" ".repeat(Math.min(fault.position ?? 0, 200))}▲</div>
      <span class="fault small" style=${{ color: "var(--bad)" }}>${t("filter.fault", { position: fault.position,
        message: fault.message })}</span></div>`}</form>`;
}
