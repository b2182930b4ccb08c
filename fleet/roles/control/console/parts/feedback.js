// Dialogs, and short messages at the edge of the window.
import { classes, html, signal, useLayoutEffect, useRef, useSignal } from "../core/ui.js";
import { t } from "../core/i18n.js";
import { Button, Fault } from "./basics.js";
import { bound, Field, TextInput, useWork } from "./form.js";
import { Icon } from "./icon.js";

const toasts = signal(/** @type {{id: number, kind: string, text: string, undo?: () => void}[]} */ ([]));
let made = 0;

/** @param {string} text @param {{kind?: string, undo?: () => void}} [more] */
export function say(text, { kind = "good", undo } = {}) {
  const id = (made += 1);
  toasts.value = [...toasts.value.slice(-3), { id, kind, text, undo }];
  setTimeout(() => dismiss(id), undo || kind === "bad" ? 10_000 : 5_000);
}
const dismiss = (id) => { toasts.value = toasts.value.filter((one) => one.id !== id); };

/** Say that something failed. @param {any} error */
export const sayFault = (error) => say(error.words ?? String(error), { kind: "bad" });

/** Do something, and say if it failed. @param {() => Promise<any>} work */
export const attempt = (work) => work().catch(sayFault);

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((one) => html`
  <div key=${one.id} class=${classes("toast", one.kind)}><${Icon} class="mark" name=${one.kind === "bad" ? "warn"
    : "check"} />
    <div class="grow wrap">${one.text}</div>
    ${one.undo && html`<button type="button" class="button quiet"
      onClick=${() => { dismiss(one.id); one.undo?.(); }}>${t("undo")}</button>`}
    <button type="button" class="button quiet square" aria-label=${t("close")} onClick=${() => dismiss(one.id)}>
      <${Icon} name="close" small /></button></div>`)}</div>`;

/** A dialog; it is there as long as it is drawn. */
export function Dialog({ title, onClose, wide = false, children, footer }) {
  const box = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useLayoutEffect(() => {
    const before = document.activeElement, dialog = /** @type {HTMLDialogElement} */ (box.current);
    dialog.showModal();
    return () => {
      // Nothing behind an open dialog can have the focus; closing gives it back, unless what had it is gone.
      dialog.close();
      if (!before?.checkVisibility()) document.getElementById("content")?.focus({ preventScroll: true });
    };
  }, []);
  return html`<dialog ref=${box} class=${classes(wide && "wide")} aria-label=${title}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onMouseDown=${(event) => { if (event.target === box.current) onClose(); }}>
    <header><h2>${title}</h2><${Button} kind="quiet" icon="close" label=${t("close")} onClick=${onClose} /></header>
    <div class="body">${children}</div>${footer && html`<footer class="actions">${footer}</footer>`}</dialog>`;
}

/** How a form ends: what went wrong, and its buttons. @param {{work: any, onCancel?: () => void, kind?: string, children: any}} props */
export const Submit = ({ work, onCancel, children, kind = "main-action", ...more }) => html`<${Fault}
  error=${work.error} /><div class="actions">${onCancel && html`<${Button} onClick=${onCancel}>${t("cancel")}<//>`}
  <${Button} type="submit" kind=${kind} busy=${work.busy} ...${more}>${children}<//></div>`;

/** A dialog with a form; what else is given is for the button that sends it. */
export const FormDialog = ({ title, onClose, work, action, children, wide = false, ...more }) => html`<${Dialog}
  title=${title} wide=${wide} onClose=${onClose}><form class="form" onSubmit=${work.submit}>${children}
  <${Submit} work=${work} onCancel=${onClose} ...${more}>${action}<//></form><//>`;

/**
 * Ask before something is done that cannot be undone.
 * @param {{title: string, action: string, typed?: string, disabled?: boolean, kind?: string, wide?: boolean,
 *   onClose: () => void, run: () => Promise<any>, children?: any}} props  typed: what must be typed in first
 */
export function Confirm({ typed, disabled, onClose, run, children, kind = "main-action danger", ...more }) {
  const given = useSignal(""), fits = !typed || given.value.trim().toLowerCase() === typed.toLowerCase();
  const work = useWork(async () => { await run(); onClose(); });
  return html`<${FormDialog} ...${more} onClose=${onClose} work=${work} kind=${kind} disabled=${disabled
    || !fits}>${children}
    ${typed && html`<${Field} label=${t("confirm.type", { text: typed })}><${TextInput} ...${bound(given)}
      class="mono" autofocus autocomplete="off" /><//>`}<//>`;
}
