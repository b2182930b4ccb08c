// Small parts that every page uses.
import { classes, html, useEffect, useRef } from "../core/ui.js";
import { ago, exact, moment, t } from "../core/i18n.js";
import { to } from "../core/router.js";
import { Icon } from "./icon.js";

export const Badge = ({ kind = "", children, dot = false }) =>
  html`<span class=${classes("badge", kind)}>${dot && html`<span class=${classes("dot", kind)}>
    </span>`}${children}</span>`;

/** A time, by default as its distance from now. */
export function Time({ at, plain = false }) {
  if (!at) return html`<span class="muted">–</span>`;
  return html`<time datetime=${at} title=${exact(at)} class="nowrap">${plain ? moment(at) : ago(at)}</time>`;
}

/** A button; while it is busy it does nothing and keeps the focus, which a disabled one would lose. */
export function Button({ icon, kind = "", busy = false, label, children, type = "button", onClick, ...more }) {
  const name = classes("button", kind, busy && "busy", !children && "square");
  const wait = (/** @type {Event} */ event) => event.preventDefault();
  return html`<button type=${type} class=${name} aria-label=${label} title=${label} ...${more}
    aria-disabled=${busy ? "true" : undefined} onClick=${busy ? wait : onClick}>
    ${icon && !busy && html`<${Icon} name=${icon} />`}${children}</button>`;
}

export const LinkButton = ({ icon, kind = "", href, children }) =>
  html`<a class=${classes("button", kind)} href=${href}>${icon && html`<${Icon} name=${icon} />`}${children}</a>`;

/** The head of a page; it names the tab, too. */
export function Head({ title, about, back, children }) {
  useEffect(() => { document.title = `${title} · fleet`; }, [title]);
  return html`<header class="head"><div class="lead">
    ${back && html`<a class="crumb" href=${to(back.path, back.query)}><${Icon} name="left" small />${back.name}</a>`}
    <h1>${title}</h1>${about && html`<p>${about}</p>`}</div>
    ${children && html`<div class="row">${children}</div>`}</header>`;
}

export const Card = ({ title, aside, flush = false, children }) => html`<section class=${classes("card", flush
  && "flush")}>
  ${(title || aside) && html`<div class="title">${title ? html`<h2>${title}</h2>` : html`<span>
    </span>`}${aside}</div>`}${children}</section>`;

export const Stat = ({ label, value, note, href, dot }) => {
  const inside = html`<span class="label">${dot && html`<span class=${classes("dot", dot)}></span>`}${label}</span>
    <span class="value">${value}</span><span class="more-about">${note}</span>`;
  return href ? html`<a class="card stat" href=${href}>${inside}</a>` : html`<div class="card stat">${inside}</div>`;
};

export const Loading = () => html`<div class="loading" role="status"><span class="hidden-text">${t("loading")}</span>
  <i></i><i></i><i></i></div>`;

export const Empty = ({ icon = "info", title, children, action }) => html`<div class="empty">
  <${Icon} name=${icon} /><h2>${title}</h2>${children && html`<p>${children}</p>`}${action && html`<div
    class="row">${action}</div>`}</div>`;

/** What went wrong, in the viewer's words and the server's. */
export function Fault({ error, retry }) {
  if (!error) return null;
  const words = error.words ?? String(error.message ?? error);
  const more = error.detail && error.detail !== words ? error.detail : "";
  return html`<div class="problem" role="alert"><${Icon} name="warn" /><div class="grow"><strong>${words}</strong>
    ${more && html`<div class="small">${more}</div>`}
    ${error.request && html`<div class="small">${t("problem.request", { id: error.request })}</div>`}</div>
    ${retry && html`<${Button} kind="quiet" icon="retry" onClick=${retry} label=${t("retry")} />`}</div>`;
}

export const Note = ({ kind = "", children }) =>
  html`<div class=${classes("note", kind)}><${Icon} name=${kind === "warn" ? "warn" : "info"} /><div
    class="grow">${children}</div></div>`;

/** @param {{choices: [string, any][], value: string, onValue: (value: string) => void, label: string}} props */
export const Choices = ({ choices, value, onValue, label }) => html`<div class="choices" role="group"
  aria-label=${label}>
  ${choices.map(([name, text]) => html`<button type="button" key=${name} aria-pressed=${String(name === value)}
    onClick=${() => onValue(name)}>${text}</button>`)}</div>`;

/** Links to the parts of a page. */
export const Tabs = ({ tabs, current, label }) => {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => box.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest",
    inline: "nearest" }), [current]);
  return html`<nav class="tabs" ref=${box} aria-label=${label}>
  ${tabs.map(([name, text, href]) => html`<a key=${name} href=${href} aria-current=${name === current ? "page"
    : undefined}>${text}</a>`)}</nav>`;
};

export const Code = ({ value, label }) =>
  html`<pre class="code" tabindex="0" aria-label=${label}>${typeof value === "string" ? value : JSON.stringify(value,
    null, 2)}</pre>`;

/** Shares of a whole. @param {{parts: [string, number, string][], label?: string}} props kind, amount, text */
export const Meter = ({ parts, label }) => {
  const whole = parts.reduce((sum, [, amount]) => sum + amount, 0) || 1;
  return html`<div class="meter" role="img"
    aria-label=${label ?? parts.filter((one) => one[1]).map((one) => `${one[2]}: ${one[1]}`).join(", ")}>
    ${parts.map(([kind, amount]) => html`<i class=${kind} style=${{ width: `${(amount / whole) * 100}%` }}>
      </i>`)}</div>`;
};
