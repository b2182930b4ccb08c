// The viewer's choice of language and colours.
import { html } from "../core/ui.js";
import { LANGUAGES, language, speak, t } from "../core/i18n.js";
import { paint, theme } from "../core/theme.js";
import { Icon } from "./icon.js";

export const Appearance = () => html`<div class="row tight appearance">
  <div class="choices" role="group" aria-label=${t("language")}>${Object.entries(LANGUAGES).map(([name, text]) => html`
    <button type="button" key=${name} lang=${name} aria-pressed=${String(language.value === name)}
      onClick=${() => speak(/** @type {any} */ (name))}>${text}</button>`)}</div>
  <div class="choices" role="group" aria-label=${t("theme")}>${/** @type {const} */ (["light", "dark",
    "auto"]).map((name) => html`
    <button type="button" key=${name} aria-label=${t(`theme.${name}`)} title=${t(`theme.${name}`)}
      aria-pressed=${String(theme.value === name)} onClick=${() => paint(name)}>
      <${Icon} name=${name === "light" ? "sun" : name === "dark" ? "moon" : "auto"} small /></button>`)}</div></div>`;
