// What devices used: turns, speech, tokens, by day, agent or device.
import { Card, Choices, Empty, go, Head, html, Loaded, Note, number, Rows, short, span, Stat, t, to, useGet } from
  "../kit.js";
import { byDay, Chart } from "../parts/chart.js";

const BY = ["agent", "device", "day"];
const DAYS = { 7: "since.week", 30: "life.month", 90: "life.quarter" };
const sum = (items, name) => items.reduce((whole, one) => whole + one[name], 0);

export default function Usage({ query }) {
  const days = Number(query.days ?? 30), by = query.by ?? "agent";
  const since = new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
  const daily = useGet("/usage", { by: "day", since }), parts = useGet("/usage", { by, since });
  return html`<${Head} title=${t("page.usage")} about=${t("usage.about")}>
      <${Choices} label=${t("time")} value=${String(days)} onValue=${(one) => go(["usage"], { ...query,
        days: one })} choices=${Object.entries(DAYS).map(([one, key]) => [one, t(key)])} /><//>
    <${Loaded} of=${daily}>${({ items }) => (items.length === 0 ? html`<${Card}><${Empty} icon="usage"
      title=${t("usage.none")}>${t("usage.none-about")}<//><//>` : html`<div class="stats">
      <${Stat} label=${t("usage.turns")} value=${short(sum(items, "turns"))} note=${t("usage.failed-of",
        { count: number(sum(items, "failed")) })} />
      <${Stat} label=${t("page.conversations")} value=${short(sum(items, "sessions"))} />
      <${Stat} label=${t("usage.speech")} value=${span(sum(items, "speech_ms"))} note=${t("usage.speech-note")} />
      <${Stat} label=${t("usage.spoken")} value=${span(sum(items, "spoken_ms"))} note=${t("usage.spoken-note")} />
      <${Stat} label=${t("usage.tokens")} value=${short(sum(items, "input_tokens") + sum(items, "output_tokens"))}
        note=${t("usage.tokens-note", { input: short(sum(items, "input_tokens")), output: short(sum(items,
        "output_tokens")) })} /></div>
      <div class="cards"><${Card} title=${t("usage.turns-by-day")}><${Chart} label=${t("usage.turns-by-day")}
        times=${byDay(items, days).map((one) => one.at)} series=${[
        { name: t("usage.turns"), values: byDay(items, days).map((one) => one.turns ?? 0), color: "accent",
          kind: "columns" }, { name: t("turn.failed"), values: byDay(items, days).map((one) => one.failed ?? 0),
          color: "bad", kind: "columns" }]} /><//>
      <${Card} title=${t("usage.tokens-by-day")}><${Chart} label=${t("usage.tokens-by-day")} times=${byDay(items,
        days).map((one) => one.at)} series=${[
        { name: t("usage.input"), values: byDay(items, days).map((one) => one.input_tokens ?? 0), color: "info" },
          { name: t("usage.output"), values: byDay(items, days).map((one) => one.output_tokens ?? 0),
          color: "plum" }]} /><//></div>
      <${Card} flush title=${t("usage.by")} aside=${html`<${Choices} label=${t("usage.by")} value=${by}
        onValue=${(one) => go(["usage"], { ...query, by: one })} choices=${BY.map((one) => [one,
        t(`usage.by.${one}`)])} />`}><${Loaded} of=${parts}>${(found) => html`
        ${found.truncated && html`<${Note}>${t("usage.truncated")}<//>`}<${Rows} items=${[...found.items].sort((a,
          b) => (by === "day" ? b.day.localeCompare(a.day) : b.turns - a.turns))} label=${t("usage.by")}
          row=${(one) => one[by] ?? ""} columns=${[
          { name: t(`usage.by.${by}`), show: (one) => (by === "device" ? html`<a class="mono name"
            href=${to(["devices", one.device])}>${one.device}</a>` : html`<strong>${one[by] || t("none")}</strong>`) },
          { name: t("usage.turns"), right: true, show: (one) => number(one.turns) }, { name: t("turn.failed"),
            right: true, show: (one) => number(one.failed) },
          { name: t("usage.tool-calls"), right: true, wide: true, show: (one) => number(one.tool_calls) },
            { name: t("usage.speech"), right: true, wide: true, show: (one) => span(one.speech_ms) },
          { name: t("usage.spoken"), right: true, wide: true, show: (one) => span(one.spoken_ms) },
            { name: t("usage.input"), right: true, wide: true, show: (one) => number(one.input_tokens) },
            { name: t("usage.output"), right: true, wide: true, show: (one) => number(one.output_tokens) }]} />`}<//>
            <//>`)}<//>`;
}
