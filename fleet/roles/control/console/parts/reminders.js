// What users of a device want to be reminded of.
import { ask, attempt, Button, Card, html, Loaded, may, part, say, t, Time, useGet } from "../kit.js";

export function Reminders({ path }) {
  const found = useGet(`${path}/reminders`);
  const cancel = async (one) => {
    await attempt(async () => {
      await ask(`DELETE ${path}/reminders/${part(one.id)}`);
      say(t("execution.cancelled"));
      found.again();
    });
  };
  return html`<${Loaded} of=${found}>${({ items }) => html`<${Card} title=${t("reminders.title")}>
    ${items.length === 0 ? html`<p class="muted">${t("reminders.none")}</p>` : html`<ul class="stack tight">
      ${items.map((one) => html`<li class="row apart" key=${one.id}><span class="grow wrap">${one.text}</span>
        <span class="muted"><${Time} at=${one.due} />${one.daily && ` ${t("reminders.daily", { time: one.daily })}`}</span>
        ${may("memory:write") && html`<${Button} kind="quiet" icon="trash" label=${t("reminders.cancel", {
          text: one.text })} onClick=${() => cancel(one)} />`}</li>`)}</ul>`}<//>`}<//>`;
}
