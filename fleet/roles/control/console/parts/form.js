// Fields, and forms that are made from a JSON schema.
import { cloneElement } from "preact";
import { classes, html, useMemo, useNone, useRef, useSignal } from "../core/ui.js";
import { t } from "../core/i18n.js";

let made = 0;
const useName = () => useMemo(() => `field-${(made += 1)}`, []);

/** A label with its field; `children` is one field. */
export function Field({ label, hint, fault, children }) {
  const id = useName();
  const about = classes(hint && `${id}-hint`, fault && `${id}-fault`) || undefined;
  const field = cloneElement(children, { id, "aria-describedby": about, "aria-invalid": fault ? "true" : undefined });
  return html`<div class="field"><label for=${id}>${label}</label>${field}
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
    ${fault && html`<span class="fault" id=${`${id}-fault`}>${fault}</span>`}</div>`;
}

export const TextInput = ({ onValue, class: more, ...rest }) =>
  html`<input type="text" class=${classes("input", more)} ...${rest}
    onInput=${(event) => onValue(event.currentTarget.value)} />`;
export const TextArea = ({ onValue, class: more, ...rest }) =>
  html`<textarea class=${classes("input", more)} ...${rest} onInput=${(event) => onValue(event.currentTarget.value)}>
    </textarea>`;
export const Select = ({ onValue, choices, value, ...rest }) =>
  html`<select class="input" ...${rest} value=${value} onChange=${(event) => onValue(event.currentTarget.value)}>
    ${choices.map(([name, text]) => html`<option key=${name} value=${name}
      selected=${name === value}>${text}</option>`)}</select>`;
export const Check = ({ onValue, label, checked, ...rest }) =>
  html`<label class="check"><input type="checkbox" checked=${checked} ...${rest}
    onChange=${(event) => onValue(event.currentTarget.checked)} /><span>${label}</span></label>`;

/** @param {string} text */
const numberOf = (text) => (text === "" ? null : Number(text));

/** A whole number, or any number. What was typed stays, such as `-0` on the way to `-0.5`, also if it is drawn again. */
export function NumberInput({ onValue, value, ...rest }) {
  const typed = useRef("");
  return html`<input type="number" class="input number" value=${numberOf(typed.current) === value ? typed.current
    : value ?? ""} ...${rest} onInput=${(event) => onValue(numberOf(typed.current = event.currentTarget.value))} />`;
}

/** Without a value, the knob is in the middle. */
function Range({ id, value, low, high, step, required, onValue, "aria-describedby": about }) {
  return html`<div class="range"><input type="range" id=${id} aria-describedby=${about} min=${low} max=${high}
    step=${step} value=${value ?? ""} onInput=${(event) => onValue(event.currentTarget.valueAsNumber)} />
    <${NumberInput} aria-label=${t("form.exact")} min=${low} max=${high} step=${step} required=${required}
      value=${value} onValue=${onValue} /></div>`;
}

function JsonInput({ id, value, onValue }) {
  const text = useSignal(value === undefined ? "" : JSON.stringify(value)), wrong = useSignal(false);
  return html`<${TextArea} id=${id} class="mono" rows="3" value=${text.value} aria-invalid=${wrong.value ? "true"
    : undefined} onValue=${(given) => {
    text.value = given;
    try {
      onValue(given.trim() ? JSON.parse(given) : undefined);
      wrong.value = false;
    } catch {
      wrong.value = true;
    }
  }} />`;
}

/** The field for a value of a schema. */
function fieldOf(rule, value, onValue, required) {
  if (Array.isArray(rule.enum)) {
    const choices = rule.enum.map((one, number) => [String(number), String(one)]);
    const at = rule.enum.findIndex((one) => one === value);
    return html`<${Select} value=${at < 0 ? "" : String(at)} choices=${[["", "–"], ...choices]} required=${required}
      onValue=${(text) => onValue(text === "" ? undefined : rule.enum[Number(text)])} />`;
  }
  const numeric = rule.type === "integer" || rule.type === "number";
  const step = rule.type === "integer" ? 1 : "any";
  if (numeric && Number.isFinite(rule.minimum) && Number.isFinite(rule.maximum))
    return html`<${Range} low=${rule.minimum} high=${rule.maximum} step=${step} value=${value}
      required=${required} onValue=${(given) => onValue(given ?? undefined)} />`;
  if (numeric)
    return html`<${NumberInput} required=${required} value=${value} min=${rule.minimum} max=${rule.maximum} step=${step}
      onValue=${(given) => onValue(given ?? undefined)} />`;
  if (rule.type === "boolean")
    return html`<${Select} required=${required} value=${value === undefined ? "" : String(value)} choices=${[["", "–"], ["true", t("yes")],
      ["false", t("no")]]} onValue=${(text) => onValue(text === "" ? undefined : text === "true")} />`;
  if (rule.type === "string" || rule.type === undefined)
    return html`<${TextInput} value=${value ?? ""} maxlength=${rule.maxLength} onValue=${(text) => onValue(text === ""
      && !required ? undefined : text)} />`;
  return html`<${JsonInput} value=${value} onValue=${onValue} />`;
}

/** What a new form of a schema begins with: what has no usual value, somebody chooses. @param {any} schema */
export const beginnings = (schema) => Object.fromEntries(Object.entries(schema?.properties ?? {}).map(([name,
  rule]) => [name, /** @type {any} */ (rule).default]).filter(([, usual]) => usual !== undefined));

/** Fields for all properties of a schema; names and texts are shown as they are. */
export function SchemaFields({ schema, values, onValues }) {
  const needed = new Set(schema?.required ?? []);
  return Object.entries(schema?.properties ?? {}).map(([name, rule]) => {
    const change = (value) => {
      const { [name]: _, ...others } = values;
      onValues(value === undefined ? others : { ...others, [name]: value });
    };
    const safe = /** @type {any} */ (rule && typeof rule === "object" ? rule : {});
    return html`<${Field} key=${name} label=${needed.has(name) ? `${name} *` : name}
      hint=${typeof safe.description === "string" ? safe.description : undefined}>
      ${fieldOf(safe, values[name], change, needed.has(name))}<//>`;
  });
}

/** What a field needs that shows and changes a signal. @param {import("@preact/signals").Signal<any>} of */
export const bound = (of) => ({ value: of.value, onValue: (given) => { of.value = given; } });

/**
 * What a form or a button needs that does something: it is busy meanwhile, and keeps what went wrong.
 * @param {() => Promise<any>} work
 */
export function useWork(work) {
  const busy = useSignal(false), error = useNone();
  return {
    busy: busy.value, error: error.value,
    /** @param {Event} [event] */
    submit: async (event) => {
      event?.preventDefault();
      busy.value = true;
      error.value = null;
      await work().catch((fault) => { error.value = fault; });
      busy.value = false;
    },
  };
}
