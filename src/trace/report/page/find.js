// ---- Search: the spans whose label, kind or lane has a text.

const MOST_FOUND = 200000;
const search = {text: '', found: [], at: -1};

/// Returns the marks of a panel that have `text`, in any case of letters.
function matchesOf(panel, text) {
  const t = panel.timeline, found = [];
  const styles = t.styles.map(([kind, label]) => `${t.labels[label]} ${data.kinds[kind]}`.toLowerCase().includes(text));
  t.lanes.forEach((lane, i) => {
    const whole = `PE ${lane.pe}, ${lane.name}`.toLowerCase().includes(text);
    for (const spans of [t.leaves[i], t.containers[i]])
      for (let k = 0; k < spans.size && found.length < MOST_FOUND; ++k)
        if (whole || styles[spans.style[k]]) found.push(markOf(panel, i, spans, k));
  });
  return found;
}

function find(text) {
  search.text = text.trim().toLowerCase();
  search.at = -1;
  search.found = search.text ? panels.flatMap(panel => matchesOf(panel, search.text).sort((a, b) => a.begin - b.begin)) : [];
  showFound();
  requestDraw();
}

/// Holds the match `by` places after the last one, and shows it.
function findNext(by) {
  const n = search.found.length;
  if (n === 0) return;
  search.at = search.at < 0 ? (by > 0 ? 0 : n - 1) : (search.at + by + n) % n;
  showMark(search.found[search.at]);
  showFound();
}

function showFound() {
  const n = search.found.length, most = n >= MOST_FOUND ? ' or more' : '';
  document.getElementById('found').textContent = !search.text ? '' : n === 0 ? 'none' : search.at < 0 ? n + most : `${search.at + 1} of ${n}${most}`;
}

function drawFound(panel) {
  const c = panel.context, most = 3000;
  c.strokeStyle = paint.path;
  c.lineWidth = 1.5;
  let drawn = 0;
  for (const {panel: of, lane, begin, end} of search.found) {
    if (of !== panel || end < view.from || begin > view.to || ++drawn > most) continue;
    const place = panel.lanePlace[lane], x = xOf(begin);
    if (place) c.strokeRect(x, place.y + 0.5, Math.max(1, xOf(end) - x), Math.max(1, place.height - 1));
  }
}

// ---- Measuring: a time range of the lanes of one row.

let range = null;  // {panel, row, from, to}

function setRange(chosen) {
  range = chosen;
  const box = document.getElementById('measured');
  box.hidden = !range;
  box.textContent = '';
  requestDraw();
  if (!range) return;
  const {title, lines} = measure(range);
  element('strong', '', box).textContent = title;
  for (const [name, value] of lines) element('span', '', box).textContent = `${name} ${value}`;
}

/// Returns what the lanes of a range did in it: of each kind the share of the lanes' time, spans and bytes.
function measure({panel, row, from, to}) {
  const t = panel.timeline, length = to - from;
  const sums = data.kinds.map(() => ({time: 0, spans: 0, bytes: 0}));
  for (const lane of row.lanes) {
    const spans = t.leaves[lane];
    for (let i = firstIndex(spans.size, k => spans.reach[k] > from); i < spans.size && spans.begin[i] < to; ++i) {
      const [kind, , bytes] = t.styles[spans.style[i]], whole = spans.end[i] - spans.begin[i];
      const inside = Math.min(to, spans.end[i]) - Math.max(from, spans.begin[i]);
      if (inside < 0 || (inside === 0 && whole > 0)) continue;
      sums[kind].time += inside;
      sums[kind].spans += 1;
      sums[kind].bytes += bytes ? bytes * (whole > 0 ? inside / whole : 1) : 0;
    }
  }
  const whole = length * row.lanes.length;
  const lines = sums.map((sum, kind) => ({...sum, name: data.kinds[kind]})).filter(sum => sum.spans > 0).sort((a, b) => b.time - a.time)
    .map(sum => [sum.name, `${percent(whole > 0 ? sum.time / whole : 0)} in ${sum.spans} spans` + (sum.bytes ? `, ${bytesText(sum.bytes)}, ${rateText(sum.bytes, length)}` : '')]);
  const lane = t.lanes[row.lanes[0]];
  const what = row.lanes.length > 1 ? `${row.lanes.length} lanes of PE ${lane.pe}` : `PE ${lane.pe}, ${lane.name}`;
  return {title: `${timeText(length)} of ${what}, from ${exactText(from)} to ${exactText(to)}`, lines};
}

/// Selects the time between two points of a row that has lanes; a range has an order and stays within the timeline.
function selectTimes(panel, row, a, b) {
  if (!row || row.lanes.length === 0) return;
  const within = time => Math.min(Math.max(0, time), panel.timeline.duration);
  setRange({panel, row, from: within(Math.min(a, b)), to: within(Math.max(a, b))});
}

function drawRange(panel) {
  if (!range || range.panel !== panel) return;
  const c = panel.context, x0 = xOf(range.from), x1 = xOf(range.to);
  c.globalAlpha = 0.15;
  c.fillStyle = paint.ink;
  c.fillRect(x0, panel.shown.top, Math.max(1, x1 - x0), panel.shown.bottom - panel.shown.top);
  c.globalAlpha = 1;
  c.strokeStyle = paint.ink;
  c.lineWidth = 1.5;
  c.strokeRect(x0, range.row.y, Math.max(1, x1 - x0), range.row.height);
}

// ---- Order of PEs: by number, or the busiest first.

function sortGroups(panel, busiestFirst) {
  const use = new Map(panel.groups.map(group => [group, busiestFirst ? panel.busy(group.kinds.flat()) : 0]));
  panel.groups.sort((a, b) => use.get(b) - use.get(a) || a.pe - b.pe);
  panel.layout();
}
