// What users said and what was answered, if it is recorded.
import { ask, Badge, bound, Button, Card, Check, Choices, Confirm, Fault, FormDialog, get, go, Head, html, Icon, Loaded,
  may, moment, number, put, save, say, span, t, TextInput, Time, to, useLoad, useNames, useNone, useSignal, useWork }
  from "../kit.js";
import { ConversationList, lengthOf } from "../parts/conversation-list.js";
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
        t("since.week")], ["month", t("life.month")]]} /></form>
    ${query.device && html`<div class="chips"><button type="button" class="chip" aria-pressed="true"
      onClick=${() => wanted({ device: "" })}>${query.device} <${Icon} name="close" small /></button></div>`}
    <${ConversationList} query=${{ words: query.words, device: query.device, since }} />`;
}

const OUTCOMES = { answered: "good", failed: "bad", interrupted: "warn" };
const LINES = ["question", "answer"];
const Redacted = () => html`<em class="muted">${t("conversations.redacted")}</em>`;

const Turn = ({ turn, onRedact }) => html`<article class="turn"><div class="meta"><${Time} at=${turn.at} plain
  />${turn.typed && html`<${Badge}>${t("conversations.typed")}<//>`}
    ${turn.outcome !== "answered" && html`<${Badge}
      kind=${OUTCOMES[turn.outcome] ?? ""}>${t(`turn.${turn.outcome}`)}<//>`}
    ${turn.language && html`<span>${turn.language}</span>`}${turn.speech_ms > 0
      && html`<span>${t("conversations.spoke", { time: span(turn.speech_ms) })}</span>`}
    ${turn.input_tokens + turn.output_tokens > 0 && html`<span>${t("conversations.tokens",
      { input: number(turn.input_tokens), output: number(turn.output_tokens) })}</span>`}
    ${may("conversations:write") && LINES.some((line) => turn[line]) && html`<button type="button" class="button quiet"
      aria-label=${t("conversations.redact-of", { time: moment(turn.at) })}
      onClick=${onRedact}>${t("conversations.redact")}</button>`}</div>
  ${(turn.question || turn.redacted.includes("question")) && html`<div class="said user"><span
    class="hidden-text">${t("conversations.user")}: </span>${turn.question || html`<${Redacted} />`}</div>`}
  ${turn.tools.map((tool) => html`<div class="call"><${Icon} name="tool" small /><span class="clip">${tool}</span>
    </div>`)}
  ${(turn.answer || turn.redacted.includes("answer")) && html`<div class="said answer"><span
    class="hidden-text">${t("tools.answer")}: </span>${turn.answer || html`<${Redacted} />`}</div>`}
  <${Waterfall} stages=${turn.stages} /></article>`;

/** Take lines of a turn back for good. */
function Redact({ id, turn, onClose, onDone }) {
  const lines = LINES.filter((line) => turn[line]), chosen = useSignal(lines);
  const work = useWork(async () => {
    onDone(await ask(`POST /conversations/${id}/turns/${turn.id}:redact`, { body: { lines: chosen.value } }));
    say(t("conversations.redact-done"));
    onClose();
  });
  return html`<${FormDialog} title=${t("conversations.redact-title")} onClose=${onClose} work=${work}
    action=${t("conversations.redact")} kind="main-action danger" disabled=${chosen.value.length === 0}>
    <p>${t("conversations.redact-about")}</p>
    ${lines.map((line) => html`<${Check} key=${line} label=${t(`conversations.redact-${line}`)}
      checked=${chosen.value.includes(line)} onValue=${(wanted) => { chosen.value = lines.filter((one) => (one === line
      ? wanted : chosen.value.includes(one))); }} />`)}<//>`;
}

function One({ id }) {
  const removing = useSignal(false), more = useSignal(/** @type {any[]} */ ([])),
    next = useSignal(/** @type {number|null} */ (null)), error = useNone(),
    redacting = useNone();
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
  const replace = (after) => {
    const change = (turns) => turns.map((one) => (one.id === after.id ? after : one));
    found.set({ ...found.data, turns: change(found.data.turns) });
    more.value = change(more.value);
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
        <dd>${lengthOf(conversation)}</dd></dl><//>
    <${Card}><div class="talk">${[...turns, ...more.value].map((turn) => html`<${Turn} key=${turn.id} turn=${turn}
      onRedact=${put(redacting, turn)} />`)}</div>
      <${Fault} error=${error.value} />${next.value !== null && html`<div class="more"><${Button}
        onClick=${on}>${t("more")}<//></div>`}<//>
    ${redacting.value && html`<${Redact} id=${id} turn=${redacting.value} onClose=${put(redacting, null)}
      onDone=${replace} />`}
    ${removing.value && html`<${Confirm} title=${t("conversations.delete")} action=${t("delete")}
      onClose=${put(removing, false)}
      run=${async () => { await ask(`DELETE /conversations/${id}`); say(t("done")); go(["conversations"]); }}>
        <p>${t("conversations.delete-about")}</p><//>`}`}<//>`;
}

export default function Conversations({ parts, query }) {
  return parts.length ? html`<${One} key=${parts[0]} id=${parts[0]} />` : html`<${List} query=${query} />`;
}
