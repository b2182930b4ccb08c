// Lines and columns over time, by uPlot; the numbers are in a table for those who do not see them.
import { html, useEffect, useRef, useSignal } from "../core/ui.js";
import { day, language, number, short } from "../core/i18n.js";
import { theme } from "../core/theme.js";

const color = (name) => {
  const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

/**
 * @param {{times: number[], series: {name: string, values: number[], color: string, kind?: "columns"}[], label: string,
 *   write?: (value: number) => string, times_as?: (seconds: number) => string, height?: number}} props
 */
export function Chart({ times, series, label, write = short, times_as: write_time = (seconds) => day(seconds * 1000),
  height = 210 }) {
  const box = useRef(/** @type {HTMLDivElement|null} */ (null));
  const about = `${theme.value} ${language.value} ${series.map((one) => one.name)}`;
  const ready = useSignal(false), chart = useRef(/** @type {any} */ (null));
  useEffect(() => {
    // A script of its own, which the page reads after the console's modules.
    const uPlot = /** @type {any} */ (window).uPlot;
    if (!uPlot) {
      addEventListener("load", () => { ready.value = true; }, { once: true });
      return;
    }
    const place = /** @type {HTMLDivElement} */ (box.current);
    const axis = { stroke: color("muted"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false },
      font: "12px system-ui" };
    const gap = times.length > 1 ? times[1] - times[0] : 86_400;
    const columns = uPlot.paths.bars?.({ size: [0.62, 40], radius: 0.22 });
    chart.current = new uPlot({
      width: place.clientWidth || 300, height,
      padding: [12, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7 } },
      scales: { ...(series.some((one) => one.kind) ? { x: { range: (_, low, high) => [low - gap / 2,
        high + gap / 2] } } : {}), y: { range: (_, low, high) => [0, high > 0 ? high * 1.12 : 1] } },
      axes: [{ ...axis, grid: { show: false }, values: (_, at) => at.map(write_time), space: 76 },
        { ...axis, size: 54, values: (_, at) => at.map((value) => write(value)) }],
      series: [{}, ...series.map((one) => ({
        label: one.name, stroke: color(one.color), width: one.kind ? 0 : 2, points: { show: times.length < 3
          && !one.kind },
        fill: one.kind ? color(one.color) : undefined, paths: one.kind ? columns : undefined }))],
    }, [times, ...series.map((one) => one.values)], place);
    const watch = new ResizeObserver(() => chart.current?.setSize({ width: place.clientWidth, height }));
    watch.observe(place);
    return () => { watch.disconnect(); chart.current?.destroy(); chart.current = null; };
  }, [about, height, ready.value]);
  useEffect(() => chart.current?.setData([times, ...series.map((one) => one.values)]), [JSON.stringify([times,
    series.map((one) => one.values)])]);
  return html`<figure><div class="chart" ref=${box} role="img" aria-label=${label}></div>
    <figcaption class="legend">${series.map((one) => html`<span><i class=${one.color}>
      </i>${one.name}</span>`)}</figcaption>
    <table class="hidden-text"><caption>${label}</caption><tbody>${times.map((at, place) => html`<tr><th
      scope="row">${write_time(at)}</th>
      ${series.map((one) => html`<td>${one.name}: ${number(one.values[place] ?? 0)}</td>`)}</tr>`)}</tbody></table>
        </figure>`;
}
