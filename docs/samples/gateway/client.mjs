// A small client of the LLM Gateway API: it registers one tool, asks one question, and returns the answer.
//   Node 22:  node client.mjs ws://127.0.0.1:9400 "How warm is it in the kitchen?" [TOKEN]
//   Browser:  import { ask } from "./client.mjs"; const answer = await ask("ws://127.0.0.1:9400", "How warm is it?");
const TOOL = {
  name: "read_thermometer",
  description: "Returns the temperature of a room in degrees Celsius.",
  parameters: {
    type: "object",
    properties: { room: { type: "string", description: "Name of the room" } },
    required: ["room"],
  },
};

/** Does what the tool promises; replace this with your device. */
function readThermometer({ room }) {
  return { room, celsius: 21.5 };
}

/** Returns the fields of a `tool_result`. A failure goes to the user, so give its reason in words. */
function runTool(name, given) {
  if (name !== TOOL.name) return { success: false, error: `There is no tool ${name}` };
  return { success: true, result: readThermometer(given) };
}

/** Opens a session, offers the tool, asks, and returns the answer. */
export function ask(url, question, token = "") {
  return new Promise((resolve, reject) => {
    // Pages can send no headers: the token goes as a second subprotocol.
    const socket = new WebSocket(url, token ? ["fleet.gateway", `fleet.token.${token}`] : []);
    const send = (message) => socket.send(JSON.stringify(message));
    const end = (settle, value) => {
      settle(value);
      socket.close();
    };
    let session = "";
    const receive = {
      status({ status, data }) {
        if (status !== "connected") return;
        // The session began with the connection; `start_session` with this id resumes it in another one.
        session = data.session_id;
        send({ type: "register_tools", tools: [TOOL] });
      },
      tools_registered: () => send({ type: "text_input", text: question, session_id: session }),
      tool_callback: (call) => send({ type: "tool_result", call_id: call.call_id, ...runTool(call.tool_name, call.arguments) }),
      llm_response: ({ content, is_final }) => is_final && end(resolve, content),
      error: ({ code, message, details }) => end(reject, new Error(`${code}: ${message} (${details})`)),
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      receive[message.type]?.(message);
    };
    socket.onerror = () => end(reject, new Error(`No connection to ${url}`));
    socket.onclose = () => reject(new Error("The gateway closed the connection"));
  });
}

if (globalThis.process?.argv[1]?.endsWith("client.mjs")) {
  ask(...process.argv.slice(2, 5)).then(console.log, (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
