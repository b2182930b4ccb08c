// The processes of the site, the brokers that they name, and what waits in the shards.
import { Badge, Card, Empty, html, number, Rows, t, Time } from "../kit.js";

const SHOWN = 20;

export const Processes = ({ system }) => html`<${Card} flush title=${t("system.processes")}>${system.processes.length
  ? html`<${Rows} items=${system.processes} label=${t("system.processes")} row=${(one) => one.id} columns=${[
  { name: t("accounts.role"), show: (one) => html`<strong>${one.role}</strong><div
    class="mono small muted wrap">${one.id}</div>` },
  { name: t("firmware.version"), show: (one) => (one.version === system.version ? one.version : html`<span
    title=${t("system.other-version")}><${Badge} kind="warn">${one.version}<//></span>`) },
  { name: t("system.since"), show: (one) => html`<${Time} at=${one.since} />` },
  { name: t("query.state"), show: (one) => html`<${Badge} kind=${one.faults ? "bad" : "good"} dot>${t(one.faults
    ? "system.not-ready" : "system.serving")}<//>${one.faults && html`<div
    class="muted small wrap" lang="en">${one.faults}</div>`}` }]} />`
  : html`<${Empty} icon="system" title=${t("system.no-processes")}>${t("system.no-processes-about")}<//>`}<//>`;

export const Brokers = ({ brokers }) => html`<${Card} flush title=${t("system.brokers")}>${brokers.length
  ? html`<${Rows} items=${brokers} label=${t("system.brokers")} row=${(one) => one.address} columns=${[
  { name: t("providers.address"), show: (one) => html`<span class="mono small wrap">${one.address}</span>` },
  { name: t("query.state"), show: (one) => html`<${Badge} kind=${one.away ? "bad" : "good"} dot>${t(one.away
    ? "system.broker-away" : "system.broker-well", { count: number(one.away || one.connected) })}<//>` }]} />`
  : html`<${Empty} icon="system" title=${t("system.no-brokers")}>${t("system.no-brokers-about")}<//>`}<//>`;

export const Lags = ({ system }) => html`<${Card} flush title=${t("system.lags")}>${system.lags.length
  ? html`<${Rows} items=${system.lags.slice(0, SHOWN)} label=${t("system.lags")} row=${(one) => one.shard} columns=${[
  { name: t("system.shard"), show: (one) => one.shard },
  { name: t("system.messages"), right: true, show: (one) => number(one.messages) },
  { name: t("system.lag"), right: true, show: (one) => number(one.events) }]} />`
  : html`<${Empty} icon="check" title=${t("system.no-lags")}>${t("system.no-lags-about")}<//>`}<//>`;
