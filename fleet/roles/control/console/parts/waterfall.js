// Where the time of a turn went: hearing, thinking, writing the first sentence, speaking.
import { html } from "../core/ui.js";
import { span, t } from "../core/i18n.js";

/** @param {Record<string, number>} stages in milliseconds, each from the end of hearing on, but for `heard` and `first_audio` */
export function lanes(stages) {
  const heard = stages.heard ?? 0;
  const token = stages.first_token !== undefined ? heard + stages.first_token : undefined;
  const sentence = stages.first_sentence !== undefined ? heard + stages.first_sentence : undefined;
  const points = /** @type {[string, number, number|undefined][]} */ ([["hear", 0, heard || undefined], ["think",
    heard, token], ["write", token ?? heard, sentence],
    ["speak", sentence ?? token ?? heard, stages.first_audio]]);
  return points.filter(([, from, until]) => until !== undefined && until > from).map(([name, from, until]) => ({ name,
    from, until: /** @type {number} */ (until) }));
}

export function Waterfall({ stages }) {
  const found = lanes(stages), end = Math.max(1, ...found.map((one) => one.until));
  if (!found.length) return null;
  return html`<div class="water"><div class="lane" role="img"
    aria-label=${found.map((one) => `${t(`stage.${one.name}`)} ${span(one.until - one.from)}`).join(", ")}>
    ${found.map((one) => html`<i key=${one.name} class=${one.name}
      style=${{ width: `${((one.until - one.from) / end) * 100}%` }}></i>`)}</div>
    <div class="legend">${found.map((one) => html`<span key=${one.name}><i class=${one.name}>
      </i>${t(`stage.${one.name}`)} <span class="number">${span(one.until - one.from)}</span></span>`)}</div></div>`;
}
