// When a device was connected.
import { Badge, Card, clock, Empty, get, html, Loaded, moment, percent, span, t, Time, useLoad } from "../kit.js";

const DAY = 86_400_000;

/** Spans of a time in which a device was connected or not. @param {{at: string, online: boolean}[]} changes the newest first */
export function spans(changes, online, from, until) {
  const found = [];
  let end = until, state = online;
  for (const { at, online: after } of changes) {
    const begun = Math.max(from, Date.parse(at));
    if (begun < end) found.push({ online: after, from: begun, until: end });
    end = Math.min(end, begun);
    state = !after;
    if (end <= from) break;
  }
  if (end > from) found.push({ online: state, from, until: end });
  return found.reverse();
}

function Timeline({ changes, online, days }) {
  const until = Date.now(), from = until - days * DAY;
  const parts = spans(changes, online, from, until);
  const share = parts.filter((one) => one.online).reduce((sum, one) => sum + one.until - one.from, 0) / (until - from);
  return html`<div class="stack tight"><div class="row apart small"><span class="muted">${t("presence.days",
    { days })}</span><strong>${percent(share, 1)}</strong></div>
    <div class="timeline" role="img" aria-label=${t("presence.share", { share: percent(share,
      1) })}>${parts.map((one) => html`
      <i class=${one.online ? "on" : ""} title=${`${moment(one.from)} – ${clock(one.until)}`}
        style=${{ width: `${((one.until - one.from) / (until - from)) * 100}%` }}></i>`)}</div></div>`;
}

export function Presence({ path, online, brief = false }) {
  const found = useLoad((signal) => get(`${path}/presence`, { limit: 500 }, signal), [path, online]);
  return html`<${Loaded} of=${found}>${({ items }) => html`<${Card} title=${t("device.tab.presence")}>
    ${items.length === 0 ? html`<${Empty} icon="devices" title=${t("finding.presence.none")}>${t("presence.none-about")}<//>`
      : html`<div class="stack">
      <${Timeline} changes=${items} online=${online} days=${1} />${!brief && html`<${Timeline} changes=${items}
        online=${online} days=${7} />
      <div>${items.slice(0, 100).map((one, place) => html`<div class="log-line"><${Time} at=${one.at} /><span
        class="row"><${Badge} kind=${one.online ? "good" : ""} dot>${t(one.online ? "online" : "offline")}<//>
        <span class="muted small">${place > 0 && t("presence.for",
          { time: span(Date.parse(items[place - 1].at) - Date.parse(one.at)) })}</span></span>
          </div>`)}</div>`}</div>`}<//>`}<//>`;
}
