// What users said and what was answered, if it is recorded.
import { ask, Badge, bound, Button, Card, Choices, Confirm, Fault, get, go, Head, html, Icon, Loaded, may, number,
  put, save, say, span, t, TextInput, Time, to, useLoad, useNames, useNone, useSignal } from "../kit.js";
import { ConversationList } from "../parts/conversation-list.js";
import { Waterfall } from "../parts/transcript.js";

const SINCE = { day: 1, week: 7, month: 30 };

function List({ query }) {
  const words = useSignal(query.words ?? "");
  const wanted = (more) => go(["conversations"], { ...query, ...more });
  const since = SINCE[query.since]
    ? new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - SINCE[query.since] * 86_400_000).toISOString() : "";
  return html`<${Head} title=${t("page.conversations")} about=${t("conversations.about")}>
      <${Button} icon="save" onClick=${() => save("/conversations:export", "conversations.ndjson", { since,
        device: query.device })}>${t("export")}<//><//>
    <form class="row" role="search"
      onSubmit=${(event) => { event.preventDefault(); wanted({ words: words.value.trim() }); }}>
      <div class="grow" style=${{ minWidth: "220px" }}><${TextInput} type="search" ...${bound(words)} placeholder=${t("conversations.search")} aria-label=${t("conversations.search")} /></div>
      <${Button} type="submit" icon="search">${t("search")}<//>
      <${Choices} label=${t("time")} value=${query.since ?? ""}
        onValue=${(one) => wanted({ since: one })} choices=${[["", t("always")], ["day", t("since.day")], ["week",
        t("since.week")], ["month", t("since.month")]]} /></form>
    ${query.device && html`<div class="chips"><button type="button" class="chip" aria-pressed="true"
      onClick=${() => wanted({ device: "" })}>${query.device} <${Icon} name="close" small /></button></div>`}
    <${ConversationList} query=${{ words: query.words, device: query.device, since }} />`;
}

const OUTCOMES = { answered: "good", failed: "bad", interrupted: "warn" };
export const Turn = ({ turn }) => html`<article class="turn"><div class="meta"><${Time} at=${turn.at} plain
  />${turn.typed && html`<${Badge}>${t("conversations.typed")}<//>`}
    ${turn.outcome !== "answered" && html`<${Badge}
      kind=${OUTCOMES[turn.outcome] ?? ""}>${t(`turn.${turn.outcome}`)}<//>`}
    ${turn.language && html`<span>${turn.language}</span>`}${turn.speech_ms > 0
      && html`<span>${t("conversations.spoke", { time: span(turn.speech_ms) })}</span>`}
    ${turn.input_tokens + turn.output_tokens > 0 && html`<span>${t("conversations.tokens",
      { input: number(turn.input_tokens), output: number(turn.output_tokens) })}</span>`}</div>
  ${turn.question && html`<div class="said user"><span
    class="hidden-text">${t("conversations.user")}: </span>${turn.question}</div>`}
  ${turn.tools.map((tool) => html`<div class="call"><${Icon} name="tool" small /><span class="clip">${tool}</span>
    </div>`)}
  ${turn.answer && html`<div class="said answer"><span
    class="hidden-text">${t("tools.answer")}: </span>${turn.answer}</div>`}
  <${Waterfall} stages=${turn.stages} /></article>`;

function One({ id }) {
  const removing = useSignal(false), more = useSignal(/** @type {any[]} */ ([])),
    next = useSignal(/** @type {number|null} */ (null)), error = useNone();
  const found = useLoad(async (signal) => {
    const page = await get(`/conversations/${id}`, {}, signal);
    next.value = page.next;
    return page;
  }, [id]);
  const on = async () => {
    try {
      const page = await get(`/conversations/${id}`, { after: next.value });
      more.value = [...more.value, ...page.turns];
      next.value = page.next;
    } catch (fault) {
      error.value = fault;
    }
  };
  const names = useNames(found.data ? [found.data.conversation.device] : []);
  return html`<${Loaded} of=${found}>${({ conversation, turns }) => html`
    <${Head} title=${t("conversations.one", { id })} back=${{ path: ["conversations"], name: t("page.conversations") }}>
      ${may("conversations:write") && html`<${Button} kind="danger" icon="trash"
        onClick=${put(removing, true)}>${t("delete")}<//>`}<//>
    <${Card}><dl class="facts"><dt>${t("query.device")}</dt><dd><a href=${to(["devices",
      conversation.device])}>${names.get(conversation.device) || conversation.device}</a></dd>
      <dt>${t("query.agent")}</dt><dd>${conversation.agent || "–"}</dd><dt>${t("conversations.started")}</dt><dd>
        <${Time} at=${conversation.started} plain /></dd>
      <dt>${t("conversations.length")}</dt>
        <dd>${span(Date.parse(conversation.ended) - Date.parse(conversation.started))}</dd></dl><//>
    <${Card}><div class="talk">${[...turns, ...more.value].map((turn) => html`<${Turn} key=${turn.id} turn=${turn}
      />`)}</div>
      <${Fault} error=${error.value} />${next.value !== null && html`<div class="more"><${Button}
        onClick=${on}>${t("more")}<//></div>`}<//>
    ${removing.value && html`<${Confirm} title=${t("conversations.delete")} action=${t("delete")}
      onClose=${put(removing, false)}
      run=${async () => { await ask(`DELETE /conversations/${id}`); say(t("done")); go(["conversations"]); }}>
        <p>${t("conversations.delete-about")}</p><//>`}`}<//>`;
}

export default function Conversations({ parts, query }) {
  return parts.length ? html`<${One} key=${parts[0]} id=${parts[0]} />` : html`<${List} query=${query} />`;
}
