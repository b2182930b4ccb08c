// A provider: the form of its address, key and voices, and the test whether it answers and how it sounds.
import { ask, Badge, Button, Field, FormDialog, html, say, Select, span, t, TextArea, TextInput, textOr, useNone, useSignal,
  useWork } from "../kit.js";

/** Play a WAV file. @param {AudioContext} context @param {string} wav in Base64 */
async function play(context, wav) {
  const bytes = Uint8Array.from(atob(wav), (one) => one.charCodeAt(0));
  const source = context.createBufferSource();
  source.buffer = await context.decodeAudioData(bytes.buffer);
  source.connect(context.destination);
  source.onended = () => void context.close();
  source.start();
}

/** Asking for the list of models is free of charge, and shows whether address and key are right; a voice is heard. */
export function ProviderTest({ provider }) {
  const busy = useSignal(""), found = useNone(), heard = useNone(),
    error = useNone();
  const run = (name, work) => async () => {
    busy.value = name;
    error.value = null;
    try {
      await work();
    } catch (fault) {
      error.value = fault;
    }
    busy.value = "";
  };
  const test = run("test", async () => { found.value = await ask(`POST /providers/${provider.id}:test`); });
  const hear = run("hear", async () => {
    // The browser lets sound begin only as an answer to a click.
    const context = new AudioContext();
    try {
      heard.value = await ask(`POST /providers/${provider.id}:speak`, { body: { text: t("providers.sample") } });
      await play(context, heard.value.wav);
    } catch (fault) {
      void context.close();
      throw fault;
    }
  });
  const good = found.value?.reachable && !found.value.detail;
  return html`<div class="row"><${Button} busy=${busy.value === "test"} onClick=${test}
      aria-label=${t("providers.test-of", { name: provider.name })}>${t("providers.test")}<//>
    ${found.value && html`<${Badge} kind=${good ? "good" : "bad"}>${found.value.reachable
      ? span(found.value.seconds * 1000) : t("providers.unreachable")}<//>`}
    ${provider.kind === "voice" && provider.adapter === "openai" && html`<${Button} icon="speaker"
      busy=${busy.value === "hear"} onClick=${hear}
      aria-label=${t("providers.hear-of", { name: provider.name })}>${t("providers.hear")}<//>`}
    ${heard.value && html`<${Badge} kind="good">${t("providers.first-sound",
      { time: span(heard.value.first_seconds * 1000) })}<//>`}
    ${error.value && html`<${Badge} kind="bad">${error.value.words}<//>`}
    ${(error.value?.detail || found.value?.detail) && html`<span class="small muted wrap">${error.value?.detail
      || found.value.detail}</span>`}</div>`;
}

/** Addresses of usual providers (docs/operating/models.md). */
const USUAL = {
  DeepSeek: "https://api.deepseek.com/v1",
  Qwen: "https://dashscope.aliyuncs.com/compatible-mode/v1",
  Doubao: "https://ark.cn-beijing.volces.com/api/v3",
  GLM: "https://open.bigmodel.cn/api/paas/v4",
  Kimi: "https://api.moonshot.cn/v1",
  SiliconFlow: "https://api.siliconflow.cn/v1",
  MiniMax: "https://api.minimaxi.com/v1",
  OpenAI: "https://api.openai.com/v1",
};

/** @param {{provider: any, onClose: () => void, done: (provider: any) => void}} props  provider: without id, a new one */
export function ProviderForm({ provider, onClose, done }) {
  const fresh = provider.id === undefined;
  const values = useSignal({ name: "", kind: "chat", adapter: "openai", base_url: "", key: "", model: "", voices: "",
    ...provider, ...(fresh ? {} : { voices: provider.voices.join("\n") }) });
  const usual = useSignal("");
  const choose = (name) => {
    usual.value = name;
    if (name) values.value = { ...values.value, base_url: USUAL[name], name: values.value.name
      || `${name.toLowerCase()}-${values.value.kind}` };
  };
  const set = (name) => (value) => { values.value = { ...values.value, [name]: value }; };
  const work = useWork(async () => {
    const { name, kind, adapter, base_url, key, model, voices } = values.value;
    const shared = { base_url: base_url.trim(), model: model.trim(),
      voices: voices.split("\n").map((one) => one.trim()).filter(Boolean), ...(key ? { key } : {}) };
    const made = await (fresh ? ask("POST /providers", { body: { name: name.trim(), kind, adapter, ...shared } })
      : ask(`PATCH /providers/${provider.id}`, { body: shared }));
    say(t("saved"));
    onClose();
    done(made);
  });
  return html`<${FormDialog} title=${fresh ? t("providers.make") : t("providers.change", { name: provider.name })} onClose=${onClose} work=${work}
    action=${t("save")}>
    ${fresh && html`<${Field} label=${t("providers.usual")} hint=${t("providers.usual-hint")}><${Select} value=${usual.value}
      onValue=${choose} choices=${[["", t("providers.other")], ...Object.keys(USUAL).map((one) => [one,
      textOr(`providers.usual.${one}`, one)])]} /><//>
    <div class="pair"><${Field} label=${t("query.name")} hint=${t("form.name-hint")}><${TextInput}
      value=${values.value.name} required pattern="[A-Za-z0-9._\\-]{1,63}" autofocus onValue=${set("name")} /><//>
      <${Field} label=${t("kind")}><${Select} value=${values.value.kind} onValue=${set("kind")}
        choices=${["chat", "recognition", "voice"].map((one) => [one, t(`providers.kind.${one}`)])} /><//></div>`}
    <${Field} label=${t("providers.address")} hint=${t("providers.address-hint")}><${TextInput} class="mono"
      value=${values.value.base_url} placeholder="https://llm.example/v1" onValue=${set("base_url")} /><//>
    <${Field} label=${t("providers.key")} hint=${provider.has_key ? t("providers.key-kept")
      : t("providers.key-hint")}><${TextInput} type="password" autocomplete="off" class="mono"
      value=${values.value.key} onValue=${set("key")} /><//>
    <${Field} label=${t("agents.model")} hint=${values.value.kind === "chat"
      && t("providers.model-hint")}><${TextInput} value=${values.value.model} onValue=${set("model")} /><//>
    ${values.value.kind === "voice" && html`<${Field} label=${t("providers.voices")}
      hint=${t("providers.voices-hint")}><${TextArea} rows="3" value=${values.value.voices} onValue=${set("voices")}
      /><//>`}<//>`;
}
