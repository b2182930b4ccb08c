// How far a job is.
import { html } from "../core/ui.js";
import { number, t } from "../core/i18n.js";
import { Badge, Meter } from "./basics.js";

const KINDS = { scheduled: "", preparing: "info", running: "accent", paused: "warn", halted: "bad", stopping: "warn",
  done: "good",
  stopped: "" };
export const JobState = ({ job }) => html`<${Badge} kind=${KINDS[job.state] ?? ""}
  dot=${job.state === "running"}>${t(`job.state.${job.state}`)}<//>`;

export const EXECUTIONS = /** @type {[string, string][]} */ ([["ok", "good"], ["error", "bad"], ["timed_out", "bad"],
  ["unknown", "warn"], ["sent", "info"], ["waiting", ""], ["queued", ""], ["skipped", ""], ["expired", ""],
  ["cancelled", ""]]);
export const JobMeter = ({ job }) => html`<${Meter} parts=${[
  ["good", job.counts.ok, t("execution.ok")], ["bad", job.counts.error + job.counts.timed_out, t("execution.error")],
    ["warn", job.counts.unknown, t("execution.unknown")],
  ["info", job.counts.sent, t("execution.sent")], ["rest",
    job.devices - job.counts.ok - job.counts.error - job.counts.timed_out - job.counts.unknown - job.counts.sent,
    t("execution.waiting")]]} />`;

export const ended = (job) => job.counts.ok + job.counts.error + job.counts.timed_out + job.counts.unknown + job.counts.expired + job.counts.skipped + job.counts.cancelled;
export const progress = (job) => `${number(ended(job))} / ${number(job.devices)}`;
