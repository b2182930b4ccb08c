// The frame of all pages: navigation, who is signed in, the state of the stream of events, and the page of the address.
import { classes, html, put, useEffect, useLayoutEffect, useNone, useRef, useSignal } from "./ui.js";
import { stream } from "./events.js";
import { t } from "./i18n.js";
import { place, to } from "./router.js";
import { may, me, signOut } from "./session.js";
import { Appearance } from "../parts/appearance.js";
import { Button, Fault, Head, Loading } from "../parts/basics.js";
import { Toasts } from "../parts/feedback.js";
import { Icon } from "../parts/icon.js";

/** @type {[string, [string, string, string[]][]][]} groups of pages: name, icon, scopes */
const PAGES = [
  ["watch", [["overview", "home", []], ["live", "live", ["events:read"]],
    ["conversations", "chat", ["conversations:read"]], ["alerts", "bell", ["alerts:read"]]]],
  ["fleet", [["devices", "devices", ["devices:read"]], ["groups", "groups", ["devices:read"]],
    ["jobs", "jobs", ["jobs:read"]], ["firmware", "firmware", ["devices:read"]],
    ["announcements", "speaker", ["jobs:read"]]]],
  ["voice", [["talk", "mic", ["devices:command"]], ["agents", "agent", ["agents:read"]], ["providers", "chat", ["agents:read"]]]],
  ["site", [["start", "check", ["devices:write"]], ["usage", "usage", ["usage:read"]], ["audit", "audit", ["audit:read"]],
    ["accounts", "people", ["accounts:write"]], ["tokens", "key", ["tokens:write"]],
    ["system", "system", ["system:read"]]]],
];

const loaded = new Map();

/** The page of a name; it is read when it is first shown. */
function Page({ name, parts, query }) {
  const found = useSignal(loaded.get(name)), error = useNone(), turn = useSignal(0);
  useEffect(() => {
    found.value = loaded.get(name);
    error.value = null;
    if (found.value) return;
    let wanted = true;
    import(`../pages/${name}.js`).then(
      (module) => { loaded.set(name, module.default); if (wanted) found.value = module.default; },
      () => { if (wanted) error.value = t("problem.unreachable"); });
    return () => { wanted = false; };
  }, [name, turn.value]);
  if (error.value) return html`<${Fault} error=${error.value} retry=${() => { turn.value += 1; }} />`;
  return found.value && loaded.get(name) === found.value ? html`<${found.value} key=${name} parts=${parts}
    query=${query} />` : html`<${Loading} />`;
}

const Lost = () => stream.value === "lost" && html`<div class="bar warn" role="status"><${Icon} name="warn"
  />${t("stream.lost-about")}</div>`;

const StreamState = () => html`<div class="link-state" title=${t(`stream.${stream.value}-about`)}>
  <span class=${classes("dot", stream.value === "live" ? "good" : stream.value === "lost" && "warn")}>
    </span>${t(`stream.${stream.value}`)}</div>`;

export function Shell() {
  const open = useSignal(false), main = useRef(/** @type {HTMLElement|null} */ (null)), first = useRef(true);
  const [name = "overview", ...parts] = place.value.path;
  const known = PAGES.flatMap(([, pages]) => pages).find(([one]) => one === name);
  useLayoutEffect(() => {
    open.value = false;
    // A new page begins at its top, and a screen reader begins there, too: before anybody can type into a field of it.
    if (!first.current) { scrollTo(0, 0); main.current?.focus({ preventScroll: true }); }
    first.current = false;
  }, [name, parts.join("/")]);
  const menu = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => { if (open.value) menu.current?.querySelector("a")?.focus(); }, [open.value]);
  const top = useRef(/** @type {HTMLElement|null} */ (null));
  const close = () => {
    open.value = false;
    if (!top.current) return;
    // What is inert takes no focus, and it is drawn again only later.
    top.current.inert = false;
    top.current.querySelector("button")?.focus();
  };
  const groups = PAGES.map(([group, pages]) => ({ group, pages: pages.filter(([, , scopes]) => may(...scopes)) }))
    .filter(({ pages }) => pages.length);
  const person = /** @type {import("./session.js").Me} */ (me.value);
  return html`<div class="shell" onKeyDown=${(event) => { if (event.key === "Escape" && open.value) close(); }}>
    <a class="skip" href="#content"
      onClick=${(event) => { event.preventDefault(); main.current?.focus(); }}>${t("skip")}</a>
    <header class="top" ref=${top} inert=${open.value}><${Button} kind="quiet" icon="menu" label=${t("menu")} aria-expanded=${String(open.value)}
      onClick=${put(open, true)} />
      <a class="brand" href="#/"><img src="icon.svg" alt="" />fleet</a><${StreamState} /></header>
    ${open.value && html`<button type="button" class="veil" aria-label=${t("close")}
      onClick=${close}></button>`}
    <aside ref=${menu} class=${classes("side", open.value && "open")} aria-label="fleet">
      <a class="brand" href="#/"><img src="icon.svg" alt="" />fleet</a>
      <nav aria-label=${t("menu")}>${groups.map(({ group, pages }) => html`<div key=${group}><div
        class="heading">${t(`menu.${group}`)}</div><ul>${pages.map(([one, icon]) => html`
        <li key=${one}><a href=${to(one === "overview" ? [] : [one])} aria-current=${one === name ? "page"
          : undefined} onClick=${put(open, false)}><${Icon} name=${icon} />${t(`page.${one}`)}</a>
          </li>`)}</ul></div>`)}</nav>
      <div class="foot"><${StreamState} /><${Appearance} />
        <div class="who"><span class="face" aria-hidden="true">${person.name.slice(0, 1)}</span><div class="grow">
          <strong class="clip">${person.name}</strong><div class="muted small clip">${person.tenant}</div></div>
          <${Button} kind="quiet" icon="leave" label=${t("sign-out")} onClick=${signOut} /></div></div></div>
    <div class="main" inert=${open.value}><${Lost} /><main class="content" id="content" tabindex="-1" ref=${main}>
      ${known && may(...known[2]) ? html`<${Page} name=${name} parts=${parts} query=${place.value.query} />`
        : html`<${Head} title=${t("nowhere")} about=${t("nowhere.about")} />
          <div><a class="button" href="#/">${t("page.overview")}</a></div>`}</main></div>
    <${Toasts} /></div>`;
}
