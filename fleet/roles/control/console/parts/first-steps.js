// What to do while there is no device yet.
import { html } from "../core/ui.js";
import { t } from "../core/i18n.js";
import { to } from "../core/router.js";
import { Card } from "./basics.js";

export const FirstSteps = () => html`<${Card} title=${t("first.title")}><ol class="stages">${["wifi", "address",
  "code", "talk"].map((step, place) => html`
  <li key=${step}><span class="step">${place + 1}</span><div><strong>${t(`first.${step}`)}</strong><div
    class="muted">${t(`first.${step}-about`)}</div></div></li>`)}</ol>
  <div class="row" style=${{ marginTop: "16px" }}><a class="button main-action"
    href=${to(["devices"])}>${t("devices.add")}</a><a class="button" href=${to(["agents"])}>${t("page.agents")}</a>
    </div><//>`;
