// Charts: lines and columns over time, and the turns of the last days.
import { Card, classes, day, Empty, html, Loaded, number, short, t, to, useEffect, useGet, useRef, useSignal } from
  "../kit.js";

const LEFT = 46, RIGHT = 10, TOP = 12, BOTTOM = 24;
const STEPS = [1, 2, 2.5, 5, 10];

/** Round marks of an axis that ends above all values. @param {number} most @param {boolean} [whole]  of counts @returns {number[]} */
export function marks(most, whole = false) {
  const rough = Math.max(1, most) / 4, unit = 10 ** Math.floor(Math.log10(rough));
  const step = (STEPS.find((one) => one * unit >= rough && (!whole || Number.isInteger(one * unit))) ?? 10) * unit;
  return Array.from({ length: Math.floor(Math.max(1, most) / step) + 2 }, (_, place) => place * step);
}

/** @param {{times: number[], series: {name: string, values: number[], color: string, kind?: "columns"}[], label: string, height?: number}} props
 *   times: in milliseconds */
export function Chart({ times, series, label, height = 220 }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null)), width = useSignal(600), at = useSignal(-1);
  useEffect(() => {
    const place = /** @type {HTMLElement} */ (box.current);
    const watch = new ResizeObserver(() => { width.value = Math.max(200, place.clientWidth); });
    watch.observe(place);
    return () => watch.disconnect();
  }, []);
  const values = series.flatMap((one) => one.values), axis = marks(Math.max(...values), values.every(Number.isInteger));
  const inner = width.value - LEFT - RIGHT, step = inner / Math.max(1, times.length), every = Math.max(1,
    Math.ceil(72 / step));
  const x = (place) => LEFT + (place + 0.5) * step;
  const y = (value) => height - BOTTOM - (value / axis[axis.length - 1]) * (height - TOP - BOTTOM);
  const wide = Math.min(30, step * 0.64);
  const move = (event) => {
    const place = Math.floor((event.clientX - /** @type {HTMLElement} */ (box.current).getBoundingClientRect().left - LEFT) / step);
    at.value = place >= 0 && place < times.length ? place : -1;
  };
  return html`<figure class="chart" ref=${box} onPointerMove=${move} onPointerLeave=${() => { at.value = -1; }}>
    <svg width=${width.value} height=${height} role="img" aria-label=${label}>
      ${axis.map((value) => html`<line key=${value} class="grid-line" x1=${LEFT} x2=${width.value - RIGHT}
        y1=${y(value)} y2=${y(value)} />
        <text x=${LEFT - 8} y=${y(value) + 4} text-anchor="end">${short(value)}</text>`)}
      ${times.map((time, place) => place % every === 0 && html`<text key=${time} x=${x(place)} y=${height - 6}
        text-anchor="middle">${day(time)}</text>`)}
      ${at.value >= 0 && html`<rect class="here" x=${x(at.value) - step / 2} y=${TOP} width=${step}
        height=${height - TOP - BOTTOM} />`}
      ${series.map((one) => (one.kind === "columns" ? one.values.map((value, place) => value > 0 && html`<rect
        key=${place} class=${one.color} rx="2"
          x=${x(place) - wide / 2} y=${y(value)} width=${wide} height=${Math.max(1, y(0) - y(value))} />`)
        : html`<polyline class=${classes("line", one.color)} points=${one.values.map((value,
          place) => `${x(place)},${y(value)}`).join(" ")} />`))}</svg>
    <figcaption class="legend">${series.map((one) => html`<span key=${one.name}><i class=${one.color}></i>${one.name}
      ${at.value >= 0 && html`<strong class="number">${number(one.values[at.value] ?? 0)}</strong>`}</span>`)}
      ${at.value >= 0 && html`<span>${day(times[at.value])}</span>`}</figcaption>
    <table class="hidden-text"><caption>${label}</caption><tbody>${times.map((time, place) => html`<tr key=${time}><th
      scope="row">${day(time)}</th>
      ${series.map((one) => html`<td>${one.name}: ${number(one.values[place] ?? 0)}</td>`)}</tr>`)}</tbody></table>
        </figure>`;
}

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
        { name: t("turn.failed"), values: found.map((one) => one.failed ?? 0), color: "bad", kind: "columns" }]}
          />`}<//>`;
  }}<//>`;
}
