// Calls of tools that wait for a device, or were sent to it.
import { ask, attempt, Badge, Button, Card, Empty, html, ListTable, may, say, t, Time, useEvents, useList }
  from "../kit.js";
import { OUTCOMES } from "./device-calls.js";

/** A command that was not sent can still be given up. */
const OPEN = ["queued", "waiting"];
const STATES = { ...OUTCOMES, waiting: "info", expired: "warn", skipped: "warn" };

/** Give a command up. @param {string} path of the device @param {number} id */
export const cancelCommand = (path, id) => ask(`POST ${path}/commands/${id}:cancel`);

export function Commands({ path, mac }) {
  const found = useList(`${path}/commands`);
  useEvents(["device", "tool", "job"], (events) => {
    if (events.some((one) => !one.device || one.device === mac)) found.again();
  }, 1_000);
  const cancel = (one) => attempt(async () => {
    const after = await cancelCommand(path, one.id);
    say(after.state === "sent" ? t("commands.too-late") : t("execution.cancelled"), { kind: after.state === "sent"
      ? "bad" : "good" });
    found.again();
  });
  return html`<${ListTable} of=${found} label=${t("device.tab.commands")} title=${t("device.tab.commands")}
    row=${(one) => one.id} aside=${html`<${Button} kind="quiet" icon="retry" label=${t("retry")}
    onClick=${found.again} />`}
    empty=${html`<${Empty} icon="tool" title=${t("commands.none")}>${t("commands.none-about")}<//>`} columns=${[
    { name: t("query.tool"), show: (one) => html`<div class="wrap"><code>${one.tool}</code><div
      class="muted small wrap mono">${JSON.stringify(one.arguments)}</div></div>` },
    { name: t("query.state"), show: (one) => html`<${Badge} kind=${STATES[one.state]
      ?? ""}>${t(`execution.${one.state}`)}<//>${one.text && html`<div class="muted small wrap">${one.text}</div>`}` },
    { name: t("jobs.created"), wide: true, show: (one) => html`<${Time} at=${one.created} />` },
    { name: t("jobs.expires"), wide: true, show: (one) => html`<${Time} at=${one.expires} />` },
    { name: "", right: true, show: (one) => OPEN.includes(one.state) && may("devices:command") && html`<${Button}
      kind="quiet" icon="close" label=${t("commands.cancel", { tool: one.tool, id: one.id })}
      onClick=${() => cancel(one)} />` }]} />`;
}
