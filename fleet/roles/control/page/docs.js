// Shows openapi.json. Text only ever becomes text: nothing of the document is read as HTML.

const make = (name, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(name), attributes);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

const api = await (await fetch("openapi.json")).json();

const resolve = (schema, seen = []) => {
  if (Array.isArray(schema)) return schema.map((part) => resolve(part, seen));
  if (schema === null || typeof schema !== "object") return schema;
  const name = schema.$ref?.split("/").at(-1);
  if (name) return seen.includes(name) ? { $ref: name } : resolve(api.components.schemas[name], [...seen, name]);
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolve(value, seen)]));
};

const schemaOf = (content) => Object.entries(content ?? {}).map(([type, { schema }]) =>
  make("div", {}, make("code", { textContent: type }),
    schema && make("pre", { textContent: JSON.stringify(resolve(schema), null, 2), tabIndex: 0 })));

const parameters = (list) => list && make("table", {},
  make("tr", {}, ...["parameter", "in", "type", "meaning"].map((textContent) => make("th", { textContent }))),
  ...list.map((one) => make("tr", {}, ...[
    one.name + (one.required ? " (required)" : ""), one.in, JSON.stringify(one.schema), one.description ?? "",
  ].map((textContent) => make("td", { textContent })))));

const body = (operation) => make("div", {},
  ...(operation.description ?? "").split("\n\n").map((textContent) => make("p", { textContent })),
  parameters(operation.parameters),
  operation.requestBody && make("h3", { textContent: "Request" }),
  ...schemaOf(operation.requestBody?.content),
  ...Object.entries(operation.responses).filter(([status]) => status < "300").flatMap(([status, answer]) => [
    make("h3", { textContent: `Answer ${status}` }), ...schemaOf(answer.content)]),
  make("p", { textContent: `Errors (problem+json): ${Object.keys(operation.responses).filter((s) => s >= "400").join(", ")}` }));

const entries = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation, noun: operation.tags?.[0] ?? "" })));

const show = () => {
  const wanted = document.getElementById("filter").value.toLowerCase();
  const found = entries.filter(({ path, operation }) =>
    `${path} ${operation.summary} ${operation["x-scope"]}`.toLowerCase().includes(wanted));
  const nouns = [...new Set(found.map(({ noun }) => noun))].sort();
  document.getElementById("nouns").replaceChildren(
    ...nouns.map((noun) => make("a", { href: `#${noun}`, textContent: noun })));
  document.getElementById("routes").replaceChildren(...nouns.flatMap((noun) => [
    make("h2", { id: noun, textContent: noun }),
    ...found.filter((entry) => entry.noun === noun).map(({ path, method, operation }) => {
      const details = make("details", {}, make("summary", {},
        make("span", { className: "method", textContent: method.toUpperCase() }),
        make("code", { textContent: path }),
        make("code", { className: "scope", textContent: operation["x-scope"] || "open" })));
      details.addEventListener("toggle", () => details.append(body(operation)), { once: true });
      return details;
    })]));
};

document.getElementById("filter").addEventListener("input", show);
show();
