// Begins the console: the viewer's language, who is signed in, and then the page of the address.
import { html, render } from "./core/ui.js";
import { language, speak } from "./core/i18n.js";
import { begin } from "./core/events.js";
import { me, restore } from "./core/session.js";
import { Shell } from "./core/shell.js";
import { SignIn } from "./pages/sign-in.js";

const App = () => {
  language.value;
  return me.value ? html`<${Shell} />` : html`<${SignIn} />`;
};

await Promise.all([speak(language.value, false), restore()]);
begin();
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
