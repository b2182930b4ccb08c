// The viewer's choice of language and colours: light, dark, or as the system has it.
import { html, Icon, language, LANGUAGES, signal, speak, t } from "../kit.js";

const KEY = "fleet.theme";
/** @type {import("@preact/signals").Signal<"auto"|"light"|"dark">} */
export const theme = signal(/** @type {any} */ (localStorage.getItem(KEY) ?? "auto"));

const show = () => { document.documentElement.dataset.theme = theme.value; };
show();

/** @param {"auto"|"light"|"dark"} wanted */
export function paint(wanted) {
  theme.value = wanted;
  localStorage.setItem(KEY, wanted);
  show();
}

export const Appearance = () => html`<div class="row tight appearance">
  <div class="choices" role="group" aria-label=${t("query.language")}>${Object.entries(LANGUAGES).map(([name, text]) => html`
    <button type="button" key=${name} lang=${name} aria-pressed=${String(language.value === name)}
      onClick=${() => speak(/** @type {any} */ (name))}>${text}</button>`)}</div>
  <div class="choices" role="group" aria-label=${t("theme")}>${/** @type {const} */ (["light", "dark",
    "auto"]).map((name) => html`
    <button type="button" key=${name} aria-label=${t(`theme.${name}`)} title=${t(`theme.${name}`)}
      aria-pressed=${String(theme.value === name)} onClick=${() => paint(name)}>
      <${Icon} name=${name === "light" ? "sun" : name === "dark" ? "moon" : "auto"} small /></button>`)}</div></div>`;
