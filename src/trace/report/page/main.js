// ---- Drawing on demand: at most once a frame.

let pending = false;
function requestDraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    drawAxis();
    for (const panel of panels) drawPanel(panel, false);
  });
}

// ---- Tooltip.

const tip = document.getElementById('tip');
function showTip(mark, x, y) {
  tip.hidden = !mark;
  if (!mark) return;
  const [head, colour, lines] = describe(mark);
  tip.textContent = '';
  const strong = element('strong', '', tip);
  element('i', '', strong).style.background = colour;
  strong.append(head);
  const list = element('dl', '', tip);
  for (const [key, value] of lines) {
    element('dt', '', list).textContent = key;
    element('dd', '', list).textContent = value;
  }
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 16 + width > innerWidth ? x - 12 - width : x + 16) + 'px';
  tip.style.top = Math.max(4, y + 18 + height > innerHeight ? y - 10 - height : y + 18) + 'px';
}

function hold(mark) {
  held = mark;
  if (mark) {
    const [head, , lines] = describe(mark);
    document.getElementById('spoken').textContent = head + ', ' + lines.map(line => line.join(' ')).join(', ');
  }
  requestDraw();
}

// ---- Mouse, touch, keyboard.

function listen(panel) {
  const box = panel.rowsBox;
  let drag = null;
  const point = e => {
    const rect = box.getBoundingClientRect();
    return {x: e.clientX - rect.left, y: e.clientY - rect.top};
  };
  box.addEventListener('wheel', e => {
    const {x} = point(e);
    if (x < NAMES && !e.ctrlKey) return;  // over the names the page scrolls
    e.preventDefault();
    const length = view.to - view.from;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      const shift = (e.deltaX || e.deltaY) * length / view.width;
      setView(view.from + shift, view.to + shift);
    } else {
      zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.004), timeOf(x));
    }
  }, {passive: false});
  box.addEventListener('pointerdown', e => {
    if (e.button !== 0 || e.target.closest('button')) return;
    const {x, y} = point(e);
    drag = {x: e.clientX, y: e.clientY, from: view.from, to: view.to, moved: false, time: timeOf(x), row: e.shiftKey ? rowAt(panel, y) : null};
    box.setPointerCapture(e.pointerId);
  });
  box.addEventListener('pointermove', e => {
    if (!drag) {
      const {x, y} = point(e);
      hovered = markAt(panel, x, y);
      showTip(hovered, e.clientX, e.clientY);
      requestDraw();
      return;
    }
    const dx = e.clientX - drag.x;
    drag.moved = drag.moved || Math.abs(dx) + Math.abs(e.clientY - drag.y) > 4;
    if (!drag.moved) return;
    if (drag.row) return selectTimes(panel, drag.row, drag.time, timeOf(point(e).x));
    box.classList.add('grab');
    showTip(null);
    const shift = -dx * view.dpr / view.scale;
    setView(drag.from + shift, drag.to + shift);
    window.scrollBy(0, -e.movementY);
  });
  const release = e => {
    if (drag && !drag.moved && e.type === 'pointerup') {
      const {x, y} = point(e);
      const mark = markAt(panel, x, y);
      hold(mark && mark.spans ? mark : null);
    }
    drag = null;
    box.classList.remove('grab');
  };
  box.addEventListener('pointerup', release);
  box.addEventListener('pointercancel', release);
  box.addEventListener('pointerleave', () => { hovered = null; showTip(null); requestDraw(); });
  box.addEventListener('dblclick', e => {
    const {x, y} = point(e);
    const mark = markAt(panel, x, y);
    if (mark && mark.end > mark.begin) zoomTo(mark);
  });
  box.addEventListener('keydown', e => { if (!e.ctrlKey && !e.metaKey && !e.altKey && key(panel, e.key)) e.preventDefault(); });
}

function zoom(factor, around) {
  setView(around + (view.from - around) * factor, around + (view.to - around) * factor);
}
function zoomTo(mark) {
  const room = (mark.end - mark.begin) * 0.6;
  setView(mark.begin - room, mark.end + room);
}
const middle = () => (view.from + view.to) / 2;

/// Returns the span `by` places after the selected one on its lane.
function step(by) {
  const index = held.index + by;
  if (index < 0 || index >= held.spans.size) return;
  hold(markOf(held.panel, held.lane, held.spans, index));
  const length = view.to - view.from;
  if (held.begin < view.from || held.end > view.to) setView((held.begin + held.end - length) / 2, (held.begin + held.end + length) / 2);
}

function key(panel, name) {
  const length = (view.to - view.from) / 5;
  const side = name === 'ArrowLeft' ? -1 : 1;
  switch (name) {
    case '+': case '=': zoom(0.7, middle()); return true;
    case '-': case '_': zoom(1 / 0.7, middle()); return true;
    case '0': fit(); return true;
    case 'c': case 'C': document.getElementById('path').click(); return true;
    case '/': document.getElementById('find').focus(); return true;
    case 'Escape': hold(null); setRange(null); return true;
    case 'ArrowLeft': case 'ArrowRight':
      if (held && held.panel === panel) step(side); else setView(view.from + side * length, view.to + side * length);
      return true;
    default: return false;
  }
}

// ---- Start.

function fillHead() {
  document.getElementById('heading').textContent = data.title;
  const summary = document.getElementById('summary');
  for (const [name, value] of data.summary) {
    const tile = element('div', '', summary);
    element('dt', '', tile).textContent = name;
    element('dd', '', tile).textContent = value;
  }
  const used = new Set(timelines.flatMap(t => [...t.kindOf]));
  const legend = document.getElementById('legend');
  const entry = (name, style, className) => {
    const item = element('li', '', legend);
    const swatch = element('i', className, item);
    if (style) swatch.style.background = style;
    item.append(name);
  };
  data.kinds.forEach((name, kind) => { if (used.has(kind)) entry(name, `var(--k-${name})`); });
  entry('idle', '', 'idle');
  entry('critical path', '', 'path');
}

/// Opens the PE of a lane, and shows the lane at a time with `room` on both sides.
function showLane(panel, lane, at, room) {
  const group = panel.groups.find(g => g.pe === panel.timeline.lanes[lane].pe);
  if (!group.open) {
    group.open = true;
    panel.layout();
  }
  setView(at - room, at + room);
  window.scrollTo({top: panel.rowsBox.getBoundingClientRect().top + window.scrollY + panel.lanePlace[lane].y - window.innerHeight / 2});
}

function showMark(mark) {
  showLane(mark.panel, mark.lane, (mark.begin + mark.end) / 2, Math.max(longest / 40, 3 * (mark.end - mark.begin)));
  hold(mark);
}

/// Shows a time of a lane and selects the span there.
function show(timeline, lane, at) {
  const panel = panels[timeline], mark = spanAt(panel, lane, at, 1000);
  if (mark && mark.spans) return showMark(mark);
  showLane(panel, lane, at, longest / 40);
  hold(null);
}

function fillRemarks() {
  for (const [title, text, facts, places] of data.remarks) {
    const box = element('article', 'remark', document.getElementById('remarks'));
    element('h2', '', box).textContent = title;
    if (text) element('p', '', box).textContent = text;
    const list = element('ul', '', box);
    for (const [place, timeline, lane, at] of places) {
      const link = element('button', 'link', element('li', '', list));
      link.type = 'button';
      link.textContent = place;
      link.disabled = timelines[timeline].shown < timelines[timeline].pes;  // the lane may not be on the page
      link.addEventListener('click', () => show(timeline, lane, at));
    }
    const table = element('dl', '', box);
    for (const [key, value] of facts) {
      element('dt', '', table).textContent = key;
      element('dd', '', table).textContent = value;
    }
  }
}

function setTheme(dark) {
  document.documentElement.classList.toggle('dark', dark);
  readColours();
  ++view.version;  // images have the colours of the other theme
  requestDraw();
}

function listenTools() {
  const on = (id, type, act) => document.getElementById(id).addEventListener(type, act);
  on('fit', 'click', fit);
  on('closer', 'click', () => zoom(0.7, middle()));
  on('wider', 'click', () => zoom(1 / 0.7, middle()));
  on('open', 'click', () => panels.forEach(panel => panel.setOpen(true)));
  on('close', 'click', () => panels.forEach(panel => panel.setOpen(false)));
  on('arrows', 'change', requestDraw);
  on('find', 'input', e => find(e.target.value));
  on('find', 'keydown', e => { if (e.key === 'Enter') findNext(e.shiftKey ? -1 : 1); });
  on('sort', 'change', e => panels.forEach(panel => sortGroups(panel, e.target.value === 'busy')));
  on('path', 'click', e => {
    showPath = !showPath;
    e.currentTarget.setAttribute('aria-pressed', String(showPath));
    requestDraw();
  });
  on('theme', 'click', () => setTheme(!document.documentElement.classList.contains('dark')));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', () => setTheme(dark.matches));
  addEventListener('resize', viewChanged);
  addEventListener('scroll', requestDraw, {passive: true});
  setTheme(dark.matches);
}

const panels = timelines.map(timeline => new Panel(timeline));
fillHead();
fillRemarks();
listenTools();
for (const panel of panels) {
  listen(panel);
  panel.layout();
}
fit();
drawAxis();
document.body.dataset.rendered = panels.reduce((sum, panel) => sum + drawPanel(panel, true), 0);
