"""What may be wrong on any page of the console: foreign texts, motion, controls that the keyboard misses."""

from typing import Any, Final

from playwright.sync_api import Page

from tests.support.console_places import Language, catalogue

NAMES: Final = (
    *("fleet", "English", "中文", "flt_…", "MAC", "SQLite", "ABCD-EFGH-JKLM-NPQR", "tag.site=berlin AND online"),
    *("auto", "https://llm.example/v1", "DeepSeek", "Qwen (DashScope)", "Doubao (Volcengine Ark)", "GLM (Zhipu)"),
    *("Kimi (Moonshot)", "SiliconFlow", "MiniMax", "OpenAI"),
)
"""Texts that are the same in both languages, and in no catalogue."""

NOTE_ANSWERS: Final = """(() => {
  const [send, set, clear] = [fetch, setTimeout, clearTimeout];
  globalThis.answered = [];
  globalThis.awaited = new Set();
  globalThis.fetch = async (...given) => {
    awaited.add(given);
    try {
      const answer = await send(...given);
      const kind = answer.headers.get('content-type') ?? '';
      if (answer.url.includes('/v1/') && kind.includes('json')) answered.push(await answer.clone().text());
      return answer;
    } finally {
      awaited.delete(given);
    }
  };
  globalThis.setTimeout = (work, pause = 0, ...more) => {
    const timer = set((...given) => { awaited.delete(timer); work(...given); }, pause, ...more);
    if (pause < 1_000) awaited.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => { awaited.delete(timer); clear(timer); };
})()"""
"""Notes what the API answers: what devices and people wrote has no language of the console.

Notes also what a page waits for: answers, and what it does in less than a second.
"""

_SETTLED = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => setTimeout(done))));
  for (let quiet = 0; quiet < 3; quiet = awaited.size ? 0 : quiet + 1) await frame();
}"""

_FOREIGN = """([own, other, names, chinese]) => {
  const data = new Set(names);
  const take = (value, key) => {
    if (key) data.add(key);
    if (typeof value === 'string') data.add(value.trim());
    else if (value && typeof value === 'object')
      for (const [name, one] of Object.entries(value)) take(one, Array.isArray(value) ? '' : name);
  };
  for (const text of answered) take(JSON.parse(text), '');
  const written = [...data].join('\\n');
  const words = chinese ? /[A-Za-z]{2,}/ : /[\\u3400-\\u9fff]/;
  const runs = (text) => text.match(/[\\u3400-\\u9fff]+/g) ?? [];
  const isNative = (text) => (chinese ? runs(text).length > 0 : runs(text).every((one) => written.includes(one)));
  const unit = /^[\\d.,:\\s\\/-]*(ms|min|kB|MB|GB|P\\d+|p\\d+)?$/;
  const isOwn = (text) => own.includes(text) || other.every((one) => one !== text) && (data.has(text)
    || written.includes(text) || unit.test(text));
  const isPair = (text) => {
    const [, name, value] = /^([\\w.-]+):? ?(.*)$/s.exec(text) ?? [];
    return data.has(name?.split('.').pop()) && (isOwn(value) || !words.test(value));
  };
  const fine = (text) => !words.test(text) || isNative(text) || isOwn(text)
    || text.split(/ · |, /).every((part) => isOwn(part) || isPair(part));
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim(), at = walk.currentNode.parentElement;
    if (text && !at.closest('script, pre') && (at.checkVisibility() || at.tagName === 'OPTION') && !fine(text))
      found.push(text);
  }
  for (const one of document.querySelectorAll('[aria-label], [title], [placeholder], [alt]'))
    for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
      const text = one.getAttribute(name)?.trim();
      if (text && one.checkVisibility() && !fine(text)) found.push(`${name}: ${text}`);
    }
  return [...new Set(found)];
}"""

_MOVING = """() => document.getAnimations()
  .filter((one) => one.playState === 'running' && one.effect.getComputedTiming().activeDuration > 50)
  .map((one) => `${one.animationName ?? one.transitionProperty} of ${one.effect.target.outerHTML.slice(0, 80)}`)"""

_CONTROLS = """() => {
  const chosen = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const root = document.querySelector('dialog[open]') ?? document.body;
  return [...root.querySelectorAll(chosen)].filter((one) => one.checkVisibility({ visibilityProperty: true })
    && !one.disabled && one.tabIndex >= 0 && !one.closest('[inert]'));
}"""

_FOLLOW_FOCUS = """() => {
  globalThis.reached = new Map();
  document.activeElement?.blur();
  if (globalThis.focusIsFollowed) return;
  globalThis.focusIsFollowed = true;
  document.addEventListener('focusin', ({ target }) => requestAnimationFrame(() => {
    if (document.activeElement !== target) return;
    reached.around ||= reached.keys().next().value === target;
    if (reached.has(target)) return;
    for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
    const style = getComputedStyle(target), box = target.getBoundingClientRect();
    const faults = [];
    const line = target.closest('.view') && target.querySelector('.item.active') || target;
    const drawn = getComputedStyle(line);
    if (drawn.outlineStyle === 'none' || parseFloat(drawn.outlineWidth) < 2) faults.push('no outline');
    const x = Math.min(Math.max((Math.max(0, box.left) + Math.min(innerWidth, box.right)) / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max((Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2, 0), innerHeight - 1);
    const above = document.elementFromPoint(x, y);
    if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth)
      faults.push('outside of the window');
    else if (!above || !(target.contains(above) || above.contains(target))) faults.push('behind something');
    reached.set(target, faults.map((fault) => `${fault}: ${target.outerHTML.slice(0, 120)}`));
  }));
}"""

_MISSED = f"""() => {{
  const controls = ({_CONTROLS})();
  return [...controls.filter((one) => !reached.has(one)).map((one) => `not reached: ${{one.outerHTML.slice(0, 120)}}`),
    ...controls.flatMap((one) => reached.get(one) ?? [])];
}}"""
_STEP = """async () => {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  return reached.around;
}"""
_MOST_STEPS = 500


def settle(page: Page) -> None:
    """Wait until a page waits for nothing, so that nothing more appears; it was opened with `NOTE_ANSWERS`.

    What is read beside the page itself comes when it is there, such as the way back from a rollout.
    """
    page.evaluate(_SETTLED)


def foreign_texts(page: Page, language: Language) -> list[str]:
    """Return texts that are neither of the language nor of the data; the page was opened with `NOTE_ANSWERS`."""
    other: Language = "en" if language == "zh" else "zh"
    own, others = catalogue(language), catalogue(other)
    strange = [text for key, text in others.items() if text != own[key]]
    given: list[Any] = [list(own.values()), strange, list(NAMES), language == "zh"]
    found: list[str] = page.evaluate(_FOREIGN, given)
    return found


def moving(page: Page) -> list[str]:
    """Return animations that run, of a visitor who wants none."""
    found: list[str] = page.evaluate(_MOVING)
    return found


def missed_by_keyboard(page: Page) -> list[str]:
    """Walk through a page with the Tab key; return the controls that it misses, hides, or shows without an outline."""
    settle(page)
    page.evaluate(_FOLLOW_FOCUS)
    for _ in range(_MOST_STEPS):
        page.keyboard.press("Tab")
        if page.evaluate(_STEP):
            break
    found: list[str] = page.evaluate(_MISSED)
    return found
