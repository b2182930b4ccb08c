// Images of firmware and assets: their upload, and the way back to an earlier one.
import { ask, bound, Button, Choices, Confirm, Dialog, Fault, Field, go, html, Loading, Meter, number, percent, say,
  t, TextInput, upload, useEffect, useLoad, useNone, useRef, useSignal } from "../kit.js";
import { both, quoted } from "./filter.js";
import { DryRun, reached } from "./job-state.js";

export const IMAGES = ["firmware", "assets"];

/** @param {{boards: string[], onClose: () => void, done: () => void}} props */
export function ImageUpload({ boards, onClose, done }) {
  const kind = useSignal("firmware"), board = useSignal(""), version = useSignal(""),
    file = useSignal(/** @type {File|null} */ (null));
  const share = useSignal(-1), error = useNone();
  const ending = useRef(/** @type {AbortController|null} */ (null));
  useEffect(() => () => ending.current?.abort(), []);
  const busy = share.value >= 0;
  const submit = async (event) => {
    event.preventDefault();
    if (!file.value) return;
    ending.current = new AbortController();
    share.value = 0;
    error.value = null;
    try {
      const about = { kind: kind.value, board: board.value.trim(), version: version.value.trim() };
      const made = await upload("/firmware", about, file.value, (sent) => { share.value = sent; }, ending.current.signal);
      say(t("firmware.added", made));
      done();
      onClose();
    } catch (fault) {
      if (fault.code !== "cancelled") error.value = fault;
    }
    share.value = -1;
  };
  return html`<${Dialog} title=${t("firmware.upload")} onClose=${onClose}><form class="form" onSubmit=${submit}>
    <div><${Choices} label=${t("kind")} ...${bound(kind)}
      choices=${IMAGES.map((one) => [one, t(`firmware.${one}`)])} /></div>
    <p class="muted">${t(`firmware.${kind.value}-about`)}</p>
    <${Field} label=${t("query.board")} hint=${t("firmware.board-hint")}><${TextInput} class="mono" list="boards" required
      ...${bound(board)} /><//>
    <datalist id="boards">${boards.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
    <${Field} label=${t("firmware.file")}><input type="file" class="input" required accept=".bin"
      onChange=${(event) => { file.value = event.currentTarget.files[0] ?? null; }} /><//>
    <${Field} label=${t("firmware.version")} hint=${t(`firmware.version-${kind.value}`)}><${TextInput} class="mono"
      ...${bound(version)} required=${kind.value === "assets"} maxlength="64" /><//>
    ${busy && html`<div class="stack tight" role="status"><${Meter} label=${t("firmware.sending")}
      parts=${[["accent", share.value, ""], ["rest", 1 - share.value, ""]]} />
      <span class="muted small">${share.value < 1 ? t("firmware.sent", { share: percent(share.value) })
        : t("firmware.checking")}</span></div>`}
    <${Fault} error=${error.value} />
    <div class="actions"><${Button} onClick=${() => (busy ? ending.current?.abort() : onClose())}>${t("cancel")}<//>
      <${Button} type="submit" kind="main-action" busy=${busy}>${t("firmware.upload")}<//></div></form><//>`;
}

/**
 * Whether one version comes before another: numbers, as devices compare them.
 * @param {string} one @param {string} other
 */
export function isOlder(one, other) {
  const [a, b] = [one, other].map((text) => text.split(".").map(Number));
  const at = Array.from({ length: Math.max(a.length, b.length) }, (_, place) => place)
    .find((place) => (a[place] ?? 0) !== (b[place] ?? 0));
  return at !== undefined && (a[at] ?? 0) < (b[at] ?? 0);
}

/** @param {{image: any, job?: any, onClose: () => void}} props  job: a rollout that ends with it */
export function GoBack({ image, job, onClose }) {
  const newer = `firmware>${quoted(image.version)}`;
  const body = { name: t("firmware.back-name", image).slice(0, 63), kind: "firmware",
    query: both(job?.query || `board=${quoted(image.board)}`, newer),
    firmware: { image: image.id, how: job?.firmware.how ?? "reboot", force: true },
    policy: { stages: [{ share: 1 }], rate: 10, window: 50 } };
  const found = useLoad((signal) => ask("POST /jobs:preview", { body, signal }), [image.id]);
  const run = async () => {
    if (job && !["done", "stopping", "stopped"].includes(job.state)) await ask(`POST /jobs/${job.id}:stop`);
    const made = await ask("POST /jobs", { body });
    say(t("jobs.begun"));
    go(["jobs", made.id]);
  };
  return html`<${Confirm} title=${t("firmware.back", image)} action=${t("firmware.back", image)}
    onClose=${onClose} run=${run}><p>${t(job ? "firmware.back-job" : "firmware.back-about", image)}</p>
    ${found.error ? html`<${Fault} error=${found.error} />` : found.data ? html`<${DryRun} of=${found.data} />
      <p class="muted small">${t("firmware.back-count", { count: number(reached(found.data)) })}</p>`
    : html`<${Loading} />`}<//>`;
}
