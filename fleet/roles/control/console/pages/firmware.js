// Images of firmware and assets: what there is for each board, who runs it, and what is being rolled out.
import { ask, Badge, Button, Card, Confirm, Empty, get, Head, html, LinkButton, Loaded, may, number, put, Rows, say,
  t, Time, to, useEvents, useGet, useLoad, useNone, useSignal } from "../kit.js";
import { EventLog } from "../parts/event-log.js";
import { quoted } from "../parts/filter.js";
import { GoBack, ImageUpload, IMAGES, isOlder } from "../parts/images.js";
import { JobTable, useJobs } from "../parts/job-state.js";

/** Boards whose versions are counted; each is a request. */
const COUNTED = 30;

export default function Firmware() {
  const images = useLoad(readImages, []), boards = useGet("/devices:counts", { by: "board" });
  const sending = useSignal(false), removing = useNone(),
    back = useNone();
  useEvents(["device.booted"], () => images.again());
  const names = Object.keys(boards.data?.items[0].values ?? {}).filter(Boolean);
  const send = may("devices:dangerous") && html`<${Button} icon="plus" kind="main-action"
    onClick=${put(sending, true)}>${t("firmware.upload")}<//>`;
  return html`<${Head} title=${t("page.firmware")} about=${t("firmware.about")}>${send}<//>
    <${Loaded} of=${images}>${(found) => (found.length === 0 ? html`<${Card}><${Empty} icon="firmware"
      title=${t("firmware.none")} action=${send}>${t("firmware.none-about")}<//><//>`
    : found.map((one) => html`<${Board} key=${one.board} ...${one} onBack=${(image) => { back.value = image; }}
      onDelete=${(image) => { removing.value = image; }} />`))}<//>
    ${may("jobs:read") && html`<${Rollouts} />`}
    ${may("events:read") && html`<${EventLog} kinds="firmware.taken" title=${t("firmware.downloads")}
      none=${t("firmware.downloads-about")} />`}
    ${sending.value && html`<${ImageUpload} boards=${names} done=${images.again}
      onClose=${put(sending, false)} />`}
    ${back.value && html`<${GoBack} image=${back.value} onClose=${put(back, null)} />`}
    ${removing.value && html`<${Confirm} title=${t("firmware.delete", removing.value)} action=${t("delete")}
      onClose=${put(removing, null)} run=${async () => {
      await ask(`DELETE /firmware/${removing.value.id}`);
      say(t("done"));
      images.again();
    }}><p>${t("firmware.delete-about")}</p><//>`}`;
}

/** @param {AbortSignal} signal @returns {Promise<any[]>} boards with their images and the versions of their devices */
async function readImages(signal) {
  const { items } = await get("/firmware", {}, signal);
  const boards = [...new Set(items.map((one) => one.board))].sort();
  const counts = await Promise.all(boards.slice(0, COUNTED).map((board) => get("/devices:counts", { by: "firmware",
    filter: `board=${quoted(board)}` }, signal)));
  return boards.map((board, at) => ({ board, images: items.filter((one) => one.board === board),
    versions: counts[at]?.items[0].values }));
}

function Board({ board, images, versions, onBack, onDelete }) {
  const total = Object.values(versions ?? {}).reduce((sum, one) => sum + one, 0);
  const isBehind = (image) => Object.keys(versions ?? {}).some((version) => isOlder(image.version, version));
  const running = (image) => (image.kind === "firmware" && versions ? html`<a class="nowrap" href=${to(["devices"],
    { filter: `board=${quoted(board)} AND firmware=${quoted(image.version)}` })}>${t("firmware.running",
    { count: versions[image.version] ?? 0, total: number(total) })}</a>` : "–");
  return html`<${Card} flush title=${html`<span class="mono">${board}</span>`} aside=${html`<a href=${to(["devices"],
    { filter: `board=${quoted(board)}` })}>${t("devices.count", { count: number(total) })}</a>`}>
    <${Rows} items=${images} label=${board} row=${(one) => one.id} columns=${[
      { name: t("firmware.version"), show: (one) => html`<strong class="mono nowrap">${one.version}</strong>` },
      { name: t("kind"), show: (one) => html`<${Badge} kind=${one.kind === "firmware" ? "info"
        : ""}>${t(`firmware.${one.kind}`)}<//>` },
      { name: t("firmware.runs"), show: running },
      { name: t("firmware.size"), wide: true, right: true, show: (one) => html`<span class="nowrap" title=${one.sha256}>${number(
        one.size / 1_048_576, { style: "unit", unit: "megabyte", maximumFractionDigits: 2 })}</span>` },
      { name: t("jobs.created"), wide: true, show: (one) => html`${one.created_by} · <${Time} at=${one.created} />` },
      { name: "", right: true, show: (one) => html`<span class="row tight" style=${{ justifyContent: "flex-end" }}>
        ${may("jobs:write", "devices:dangerous") && html`
        ${one.kind === "firmware" && isBehind(one) && html`<${Button} icon="retry"
          onClick=${() => onBack(one)}>${t("firmware.back", one)}<//>`}
        <${LinkButton} icon="jobs" href=${to(["jobs"], { make: 1, kind: one.kind, image: one.id,
          query: `board=${quoted(board)}` })}>${t("firmware.roll-out")}<//>`}
        ${may("devices:dangerous") && html`<${Button} kind="quiet" icon="trash" label=${t("firmware.delete", one)}
          onClick=${() => onDelete(one)} />`}</span>` }]} /><//>`;
}

/** The jobs that give devices an image. */
function Rollouts() {
  const jobs = useJobs(IMAGES);
  useEvents(["job"], () => jobs.again());
  return html`<${JobTable} of=${jobs} title=${t("firmware.rollouts")} label=${t("firmware.rollouts")}
    empty=${html`<${Empty} icon="jobs" title=${t("firmware.no-rollouts")}>${t("firmware.no-rollouts-about")}<//>`} />`;
}
