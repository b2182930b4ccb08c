// Turns of the last days as columns.
import { html } from "../core/ui.js";
import { t } from "../core/i18n.js";
import { to } from "../core/router.js";
import { Card, Empty } from "./basics.js";
import { Chart } from "./chart.js";
import { Loaded, useGet } from "./load.js";

/** One value for every day, also for those without any. @param {any[]} items @param {number} days */
export function byDay(items, days) {
  const found = new Map(items.map((one) => [one.day, one]));
  const today = Date.parse(new Date().toISOString().slice(0, 10));
  return Array.from({ length: days }, (_, place) => {
    const at = today - (days - 1 - place) * 86_400_000;
    return { at, ...found.get(new Date(at).toISOString().slice(0, 10)) };
  });
}

export function UsageChart({ days = 30, query = {} }) {
  const since = new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
  const usage = useGet("/usage", { by: "day", since, ...query });
  return html`<${Loaded} of=${usage}>${({ items }) => {
    const found = byDay(items, days);
    return html`<${Card} title=${t("usage.turns-by-day")} aside=${html`<a
      href=${to(["usage"])}>${t("page.usage")}</a>`}>${items.length === 0
      ? html`<${Empty} icon="usage" title=${t("usage.none")}>${t("usage.none-about")}<//>`
      : html`<${Chart} label=${t("usage.turns-by-day")} times=${found.map((one) => one.at)} series=${[
        { name: t("usage.turns"), values: found.map((one) => one.turns ?? 0), color: "accent", kind: "columns" },
        { name: t("usage.failed"), values: found.map((one) => one.failed ?? 0), color: "bad", kind: "columns" }]}
          />`}<//>`;
  }}<//>`;
}
