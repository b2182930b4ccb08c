// Conversations as a list.
import { Empty, html, ListTable, span, t, Time, to, useList, useNames } from "../kit.js";

/** From the end of the first turn to the end of the last one. */
export function lengthOf({ started, ended }) {
  const length = Date.parse(ended) - Date.parse(started);
  return length > 0 ? span(length) : "–";
}

export function ConversationList({ query, aside, title }) {
  const found = useList("/conversations", query);
  const names = useNames((found.data ?? []).map((one) => one.device));
  const searched = Object.values(query).some(Boolean);
  return html`<${ListTable} of=${found} label=${t("page.conversations")} row=${(one) => one.id} aside=${aside}
    title=${title}
    empty=${html`<${Empty} icon="chat" title=${t(searched ? "conversations.none-found"
      : "conversations.none")}>${t(searched ? "conversations.none-found-about" : "conversations.none-about")}<//>`}
    columns=${[
      { name: t("conversations.started"), show: (one) => html`<a class="name" href=${to(["conversations", one.id])}>
        <${Time} at=${one.started} plain /></a>` },
      { name: t("query.device"), show: (one) => html`<a class=${names.get(one.device) ? "wrap" : "mono small nowrap"}
        href=${to(["devices", one.device])}>${names.get(one.device) || one.device}</a>` },
      { name: t("query.agent"), wide: true, show: (one) => one.agent || html`<span class="muted">–</span>` },
      { name: t("conversations.turns"), right: true, show: (one) => one.turns },
      { name: t("conversations.length"), right: true, wide: true,
        show: lengthOf },
    ]} />`;
}
