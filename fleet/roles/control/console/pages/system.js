// What runs, and in which state.
import { Badge, Button, Card, classes, Empty, Head, html, Loaded, Note, number, Rows, Stat, t, useEvery, useGet }
  from "../kit.js";
import { Brokers, Lags, Processes } from "../parts/site.js";

export default function System() {
  const system = useGet("/system");
  useEvery(10, system.again);
  return html`<${Head} title=${t("page.system")} about=${t("system.about")}><a class="button"
    href="../v1/docs">${t("system.api")}</a><${Button} icon="retry" label=${t("retry")} onClick=${system.again} /><//>
    <${Loaded} of=${system}>${(found) => html`
      ${found.shards_without_owner.length > 0 && html`<${Note} kind="warn">${t("system.lost",
        { count: number(found.shards_without_owner.length) })}<//>`}
      ${found.processes.some((one) => one.version !== found.version) && html`<${Note}
        kind="warn">${t("system.mixed")}<//>`}
      <div class="stats"><${Stat} label=${t("firmware.version")} value=${found.version} /><${Stat}
        label=${t("system.workers")} value=${number(found.workers.length)} /><${Stat} label=${t("system.edges")}
        value=${number(found.edges.length)} note=${t("system.sessions", { count: number(found.edges.reduce((sum,
        one) => sum + one.sessions, 0)) })} />
        <${Stat} label=${t("system.messages")} value=${number(found.messages_waiting)}
          note=${t("system.messages-note")} />
        <${Stat} label=${t("system.lag")} value=${number(found.events_waiting)} note=${t("system.lag-note")} />
          <${Stat} label=${t("system.database")} value=${found.database.kind === "sqlite" ? "SQLite" : "PostgreSQL"}
          note=${found.database.revision} /></div>
      <${Processes} system=${found} />
      <div class="cards"><${Brokers} brokers=${found.brokers} /><${Lags} system=${found} /></div>
      <div class="cards"><${Card} title=${t("system.shards")}><div
        class="shards">${Array.from({ length: Math.min(found.shards, 1024) }, (_, place) => html`<span key=${place}
        class=${classes(found.shards_without_owner.includes(place) && "bad")}
        title=${found.workers.find((one) => one.shards.includes(place))?.id ?? t("system.no-owner")}>${place}</span>`)}</div><//>
        <${Card} flush title=${t("system.workers")}>${found.workers.length ? html`<${Rows} items=${found.workers}
          label=${t("system.workers")} row=${(one) => one.id} columns=${[{ name: t("system.id"),
          show: (one) => html`<span class="mono small wrap">${one.id}</span>` }, { name: t("system.shards"),
          right: true, show: (one) => number(one.shards.length) }]} />` : html`<${Empty} icon="system"
          title=${t("system.no-workers")}>${t("system.no-workers-about")}<//>`}<//></div>
      <${Card} flush title=${t("system.edges")}>${found.edges.length ? html`<${Rows} items=${found.edges}
        label=${t("system.edges")} row=${(one) => one.id} columns=${[
        { name: t("system.id"), show: (one) => html`<span class="mono small wrap">${one.id}</span>` },
          { name: t("providers.address"), wide: true, show: (one) => html`<span
          class="mono small">${one.host}:${one.port}</span>` },
        { name: t("page.conversations"), right: true, show: (one) => number(one.sessions) },
          { name: t("query.state"), show: (one) => html`<${Badge} kind=${one.stopping ? "warn"
          : "good"}>${t(one.stopping ? "job.state.stopping" : "system.serving")}<//>` }]} />` : html`<${Empty}
          icon="system" title=${t("system.no-edges")}>${t("system.no-edges-about")}<//>`}<//>
      <p class="muted small">${t("system.leader")}: <span class="mono">${found.leader ?? "–"}</span></p>`}<//>`;
}
