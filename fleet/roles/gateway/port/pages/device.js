"use strict";
// The device that this page plays: tools to register and what happens when the model calls them.
const EXAMPLE_TOOLS = {
  en: {
    info: "Tells about this device: model, firmware and battery",
    infoType: "Which part to tell; everything if left out",
    control: "Switches a device in the home on or off, or sets its value",
    action: "What to do with the device",
    device: "Which device, for example light, ac or tv",
    value: "The value to set, only with set_value",
    battery: "Tells how much battery this device has left, in percent, and whether it is charging",
    setVolume: "Sets how loud this device speaks",
    volume: "Loudness in percent",
  },
  zh: {
    info: "查询本设备的型号、固件版本和电量",
    infoType: "要查询哪一部分，省略则查询全部",
    control: "打开或关闭家里的设备，或设置它的数值",
    action: "要对设备做什么",
    device: "哪个设备，例如 light（灯）、ac（空调）、tv（电视）",
    value: "要设置的数值，仅用于 set_value",
    battery: "查询本设备剩余电量的百分比，以及是否在充电",
    setVolume: "设置本设备的音量",
    volume: "音量百分比",
  },
};

function exampleTools() {
  const text = EXAMPLE_TOOLS[language];
  const schema = (properties, required = []) => ({ type: "object", properties, required });
  const choice = (options, description) => ({ type: "string", enum: options, description });
  return [
    {
      name: "get_device_info",
      description: text.info,
      parameters: schema({ info_type: choice(["all", "battery", "system", "hardware"], text.infoType) }),
    },
    {
      name: "control_device",
      description: text.control,
      parameters: schema(
        {
          action: choice(["turn_on", "turn_off", "set_value"], text.action),
          device: { type: "string", description: text.device },
          value: { type: "number", description: text.value },
        },
        ["action", "device"],
      ),
    },
    { name: "get_battery", description: text.battery, parameters: schema({}) },
    {
      name: "set_volume",
      description: text.setVolume,
      parameters: schema({ volume: { type: "integer", description: text.volume, minimum: 0, maximum: 100 } }, ["volume"]),
    },
  ];
}

const TOOL_NAME = /^(?=.{1,64}$)[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$/;

/** Returns the tools that a text describes, and what the document would say against them. */
function readTools(text) {
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    return { tools: null, problem: say("toolsNotJson", { problem: error.message }) };
  }
  if (!Array.isArray(tools)) return { tools: null, problem: say("toolsNotList") };
  if (tools.length > 32) return { tools, problem: say("toolsMany", { count: tools.length }) };
  const seen = new Set();
  for (const tool of tools) {
    const name = String(tool?.name);
    if (!TOOL_NAME.test(name)) return { tools, problem: say("toolName", { name }) };
    if (seen.has(name)) return { tools, problem: say("toolTwice", { name }) };
    if (typeof tool.description !== "string" || tool.parameters?.type !== "object")
      return { tools, problem: say("toolShape", { name }) };
    seen.add(name);
  }
  return { tools, problem: null };
}

class Device extends EventTarget {
  constructor() {
    super();
    this.battery = 85;
    this.charging = false;
    this.volume = 50;
    this.things = new Map();
  }

  /** Returns what a tool would answer, and what it would change: {result, change} or {error}. */
  plan(name, given) {
    switch (name) {
      case "get_battery":
        return { result: { level: this.battery, charging: this.charging }, change: {} };
      case "set_volume":
        return this.planVolume(given.volume);
      case "get_device_info":
        return { result: this.info(given.info_type), change: {} };
      case "control_device":
        return this.planControl(given);
      default:
        return { result: { ok: true, arguments: given }, change: {} };
    }
  }

  planVolume(volume) {
    if (!Number.isInteger(volume) || volume < 0 || volume > 100)
      return { error: `volume must be a whole number from 0 to 100, not ${JSON.stringify(volume)}` };
    return { result: { volume, status: "set" }, change: { volume } };
  }

  planControl({ action, device, value }) {
    if (!device || !["turn_on", "turn_off", "set_value"].includes(action))
      return { error: "control_device needs a device, and turn_on, turn_off or set_value as its action" };
    if (action === "set_value" && typeof value !== "number") return { error: "set_value needs a number as its value" };
    const state = action === "set_value" ? value : action === "turn_on" ? "on" : "off";
    return { result: { device, state }, change: { thing: [String(device), state] } };
  }

  info(part) {
    const all = { hardware: { model: "Web test client" }, system: { version: "1.0" }, battery: { level: this.battery, charging: this.charging } };
    return part in all ? { [part]: all[part] } : all;
  }

  apply(change) {
    const { thing, ...plain } = change;
    Object.assign(this, plain);
    if (thing) this.things.set(...thing);
    this.dispatchEvent(new Event("change"));
  }
}
