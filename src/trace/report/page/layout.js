// ---- View: one time range for all timelines.

const NAMES = nameWidth(), RIGHT = 14;   // width of the names, free space at the right edge, in CSS pixels
const DENSE = 16;                        // more SM lanes a PE than this become thin rows
const ROW = 15, GAP = 10;                // heights of a lane's row and of the space between PEs
const SUMMARY = 26, STRIP = 6, HEAD = 20;  // heights of a folded PE's rows and of an open PE's head

/// Returns the width of the longest lane name and its percentage.
function nameWidth() {
  const c = document.createElement('canvas').getContext('2d');
  c.font = '11.5px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  const names = new Set(timelines.flatMap(t => t.lanes.map(lane => lane.name)));
  const longest = Math.max(0, ...[...names].map(name => c.measureText(name).width));
  const width = Math.round(Math.min(300, Math.max(150, longest + 66)));
  document.documentElement.style.setProperty('--names', width + 'px');
  return width;
}

const thin = lanes => Math.min(4, Math.max(1, Math.floor(200 / lanes)));  // height of one of so many thin rows

const view = {from: 0, to: longest, scale: 1, pixels: 1, width: 1, dpr: 1, version: 0};
let showPath = true, held = null, hovered = null;

function setView(from, to) {
  const room = longest * 0.03;
  const length = Math.min(Math.max(to - from, 100), longest + 2 * room);
  view.from = Math.min(Math.max(from, -room), longest + room - length);
  view.to = view.from + length;
  viewChanged();
}
const fit = () => setView(0, longest * 1.02);

function viewChanged() {
  view.dpr = window.devicePixelRatio || 1;
  view.width = Math.max(50, document.getElementById('timelines').clientWidth - 2 - NAMES - RIGHT);
  view.pixels = Math.round(view.width * view.dpr);
  view.scale = view.pixels / (view.to - view.from);
  ++view.version;
  requestDraw();
}
const xOf = time => NAMES + (time - view.from) * view.scale / view.dpr;
const timeOf = x => view.from + (x - NAMES) * view.dpr / view.scale;

// ---- Panels: a panel is a timeline on the page. Its groups are PEs, either open (a row for each lane) or folded.

class Panel {
  constructor(timeline) {
    this.timeline = timeline;
    this.groups = this.makeGroups();
    // The first PE is open, and so is any PE if there are few lanes. A folded PE is a summary of all its lanes.
    this.groups.forEach((group, i) => { group.open = i === 0 || timeline.lanes.length <= 4 * DENSE; });
    this.makeElements();
  }

  makeGroups() {
    const byPe = new Map();
    this.timeline.lanes.forEach((lane, i) => {
      if (!byPe.has(lane.pe)) byPe.set(lane.pe, {pe: lane.pe, kinds: data.laneKinds.map(() => [])});
      byPe.get(lane.pe).kinds[lane.kind].push(i);
    });
    return [...byPe.values()].sort((a, b) => a.pe - b.pe);
  }

  makeElements() {
    const t = this.timeline;
    this.section = document.createElement('section');
    this.section.setAttribute('aria-label', 'Timeline ' + t.title);
    const title = element('div', 'title', this.section);
    element('h2', '', title).textContent = t.title;
    element('span', 'time', title).textContent = timeText(t.duration);
    element('span', 'note', title).textContent = t.origin + (t.shown < t.pes ? ` \u00b7 ${t.shown} of ${t.pes} PEs: those of the critical path and the last to end` : '');
    if (t.shares.length) {
      const mix = element('span', 'mix', title);
      for (const share of t.shares) {
        const piece = element('i', '', mix);
        piece.style.width = 100 * share.time / t.duration + '%';
        piece.style.background = share.name === 'idle' ? 'var(--hatch)' : `var(--k-${data.kinds[share.kind]})`;
      }
      mix.setAttribute('aria-hidden', 'true');
      const shown = t.shares.slice(0, 5).filter(s => s.time >= 0.005 * t.duration);
      const texts = shown.map(s => `${s.name} ${percent(s.time / t.duration)}`);
      element('span', 'note', title).textContent = 'Critical path: ' + texts.join(' \u00b7 ');
    }
    this.rowsBox = element('div', 'rows', this.section);
    this.rowsBox.tabIndex = 0;
    this.rowsBox.setAttribute('role', 'application');
    this.rowsBox.setAttribute('aria-label', `Lanes of ${t.title}; plus and minus zoom, arrow keys pan`);
    this.names = element('div', 'names', this.rowsBox);
    this.canvas = element('canvas', '', this.rowsBox);
    this.context = this.canvas.getContext('2d');
    document.getElementById('timelines').append(this.section);
  }

  setOpen(open) {
    for (const group of this.groups) group.open = open;
    this.layout();
  }

  layout() {
    if (range && range.panel === this) setRange(null);  // its row goes
    this.rows = [];
    this.lanePlace = new Array(this.timeline.lanes.length);
    this.names.textContent = '';
    let y = this.layoutOverview(6);
    for (const group of this.groups) {
      group.top = y;
      y = (group.open ? this.layoutOpen(group, y) : this.layoutFolded(group, y)) + GAP;
      group.bottom = y - GAP;
    }
    this.height = y;
    this.rowsBox.style.height = y + 'px';
    viewChanged();
  }

  /// Heat maps with one line for each node.
  layoutOverview(top) {
    if (!this.timeline.overview) return top;
    const [bins, pesPerNode, parts] = this.timeline.overview;
    let y = top;
    for (const [name, nodes, least, median, most, percents] of parts) {
      const height = nodes * Math.min(STRIP, Math.max(1, Math.floor(96 / nodes)));
      const row = {type: 'heat', name, nodes, bins, pesPerNode, percents, lanes: [], y, height: Math.max(ROW, height)};
      this.rows.push(row);
      const box = element('div', '', this.names);
      element('span', '', box).textContent = nodes > 1 ? `${name} of ${nodes} nodes` : name;
      element('b', '', box).textContent = `${median}%`;
      box.title = `${name}, one line a node, of all PEs. Busy over the whole time: the least busy node ${least}%, the middle one ${median}%, the most busy one ${most}%`;
      box.style.top = y + 'px';
      box.style.height = ROW + 'px';
      y += row.height + 2;
    }
    return y + GAP;
  }

  layoutOpen(group, top) {
    this.headButton(group, top);
    let y = top + HEAD;
    group.kinds.forEach((lanes, kind) => {
      if (kind === LANE.SM && lanes.length > DENSE) {
        y = this.addRow({type: 'dense', lanes, y, height: lanes.length * thin(lanes.length), group}) + 4;
        return;
      }
      for (const lane of lanes) y = this.addRow({type: 'lane', lanes: [lane], y, height: ROW, group}) + 1;
    });
    return y;
  }

  layoutFolded(group, top) {
    this.headButton(group, top);
    let y = top;
    group.kinds.forEach((lanes, kind) => {
      if (lanes.length === 0) return;
      y = this.addRow({type: lanes.length > 1 ? 'share' : 'strip', lanes, y, height: kind === LANE.SM ? SUMMARY : STRIP, group}) + 2;
    });
    return Math.max(y, top + HEAD);
  }

  addRow(row) {
    this.rows.push(row);
    const {lanes, y, height, type, group} = row;
    lanes.forEach((lane, i) => {
      this.lanePlace[lane] = type === 'dense' ? {y: y + i * height / lanes.length, height: height / lanes.length} : {y, height};
    });
    if (group.open) this.rowName(row);
    return y + height;
  }

  /// Share of the duration in which the lanes did something other than wait.
  busy(lanes) {
    const sum = lanes.reduce((total, lane) => total + this.timeline.lanes[lane].busy, 0);
    return this.timeline.duration ? sum / lanes.length / this.timeline.duration : 0;
  }

  rowName(row) {
    const box = element('div', '', this.names);
    const first = this.timeline.lanes[row.lanes[0]];
    element('span', '', box).textContent = row.type === 'dense' ? `${row.lanes.length} SM lanes` : first.name;
    element('b', '', box).textContent = percent(this.busy(row.lanes));
    box.title = `${row.type === 'dense' ? 'SM lanes' : first.name}: busy ${percent(this.busy(row.lanes))} of the time`;
    box.style.top = row.y + 'px';
    box.style.height = (row.type === 'dense' ? Math.min(row.height, 18) : row.height) + 'px';
  }

  headButton(group, top) {
    const button = element('button', '', this.names);
    button.type = 'button';
    button.textContent = (group.open ? '\u25be ' : '\u25b8 ') + 'PE ' + group.pe;
    button.setAttribute('aria-expanded', String(group.open));
    button.title = group.open ? 'Fold' : 'Show every lane';
    button.style.top = top + 'px';
    button.style.height = HEAD + 'px';
    button.addEventListener('click', () => {
      group.open = !group.open;
      this.layout();
      this.names.querySelector(`button[data-pe="${group.pe}"]`).focus();
    });
    button.dataset.pe = group.pe;
    if (!group.open && group.kinds[LANE.SM].length) {
      const note = element('b', '', button);
      note.style.marginLeft = 'auto';
      note.style.fontSize = '11.5px';
      note.style.color = 'var(--ink2)';
      note.textContent = percent(this.busy(group.kinds[LANE.SM]));
      note.title = 'SMs busy';
    }
  }
}

function element(tag, name, parent) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}
