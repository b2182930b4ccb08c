"""What `scripts/bench console` runs in the page."""

from typing import Final

PAINTED: Final = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
NOW: Final = "() => performance.now()"

_FRAMES = """
  const tasks = new PerformanceObserver((list) => {
    for (const one of list.getEntries()) found.task = Math.max(found.task, one.duration);
  });
  tasks.observe({ entryTypes: ['longtask'] });
  const begun = performance.now();
  let last = begun;
"""

SCROLL: Final = f"""async ([seconds, perSecond]) => {{
  const view = document.querySelector('[role=grid]');
  const row = view.querySelector('[role=row]').getBoundingClientRect().height;
  const found = {{ task: 0, blank: 0, frame: 0, rows: 0, passed: 0 }};
  {_FRAMES}
  let blankSince = 0;
  while (last - begun < seconds * 1000) {{
    const at = await new Promise(requestAnimationFrame);
    const inView = view.getBoundingClientRect();
    const blank = [...view.querySelectorAll('.blank')].some((one) => {{
      const box = one.getBoundingClientRect();
      return box.bottom > inView.top && box.top < inView.bottom;
    }});
    blankSince = blank ? blankSince || at : 0;
    if (blankSince) found.blank = Math.max(found.blank, at - blankSince);
    found.frame = Math.max(found.frame, at - last);
    found.rows = Math.max(found.rows, document.querySelectorAll('[role=row]').length);
    view.scrollTop += Math.min(0.1, (at - last) / 1000) * perSecond * row;
    last = at;
  }}
  tasks.disconnect();
  found.passed = Math.max(...[...view.querySelectorAll('[role=row]')].map((one) => Number(one.ariaRowIndex)));
  return found;
}}"""
"""Scrolls the list of devices; a negative number of rows a second scrolls up. Moves with the time that has passed."""

WATCH: Final = f"""async ([seconds]) => {{
  const found = {{ task: 0, frame: 0, frames: 0, age: 0 }};
  {_FRAMES}
  while (last - begun < seconds * 1000) {{
    const at = await new Promise(requestAnimationFrame);
    found.frame = Math.max(found.frame, at - last);
    found.frames += 1;
    last = at;
  }}
  tasks.disconnect();
  const newest = document.querySelector('.log-line time')?.dateTime;
  found.age = newest ? Date.now() - Date.parse(newest) : 0;
  return found;
}}"""
"""Counts frames while events come; `age`: of the newest event of a log, in ms."""
