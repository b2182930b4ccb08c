// Why a device is silent: what the doctor finds, in the viewer's words, and below them what the server says of it.
import { Badge, Button, Card, html, Loaded, Note, t, textOr, useGet } from "../kit.js";

const VERDICTS = { ok: "good", warning: "warn", problem: "bad", wrong: "bad", skipped: "" };
const isBad = (one) => one.verdict === "problem" || one.verdict === "wrong";

export function Findings({ path }) {
  const found = useGet(`${path}/findings`);
  return html`<${Loaded} of=${found}>${({ items }) => html`<${Card} title=${t("device.tab.findings")}
    aside=${html`<${Button} kind="quiet" icon="retry" label=${t("retry")} onClick=${found.again} />`}>
    <${Note} kind=${items.some(isBad) ? "warn" : ""}>${t(items.some(isBad) ? "findings.first" : "findings.well")}<//>
    <ol class="findings">${items.map((one) => html`<${Finding} key=${one.check} finding=${one} />`)}</ol><//>`}<//>`;
}

function Finding({ finding }) {
  const check = finding.check.split(".").pop(), todo = finding.verdict !== "ok" && finding.advice;
  const key = `finding.${check}.${finding.case}`;
  return html`<li class="stack tight"><div class="row"><${Badge} kind=${VERDICTS[finding.verdict] ?? ""}
    dot>${t(`verdict.${finding.verdict}`)}<//><strong class="wrap">${textOr(key, finding.message)}</strong>
    </div>${todo && html`<p class="wrap">${textOr(`${key}-do`, finding.advice)}</p>`}
    <p class="muted small wrap" lang="en">${finding.message}</p></li>`;
}
