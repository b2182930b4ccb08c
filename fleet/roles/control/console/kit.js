// What pages and parts are made of, from one place.
export * from "./core/ui.js";
export * from "./core/api.js";
export * from "./core/i18n.js";
export * from "./core/router.js";
export * from "./core/session.js";
export * from "./core/events.js";
export * from "./parts/basics.js";
export * from "./parts/feedback.js";
export * from "./parts/form.js";
export * from "./parts/icon.js";
export * from "./parts/load.js";
export * from "./parts/table.js";
