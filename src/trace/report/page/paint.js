// ---- Colours, read from the style sheet.

const paint = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'card', 'ink', 'ink2', 'line', 'grid', 'track', 'hatch', 'path', 'arrow', 'ends']) {
    paint[name] = style.getPropertyValue('--' + name).trim();
  }
  paint.kinds = data.kinds.map(kind => style.getPropertyValue('--k-' + kind).trim());
  const word = css => parseInt('ff' + css.slice(5, 7) + css.slice(3, 5) + css.slice(1, 3), 16) >>> 0;  // ABGR: little-endian RGBA
  paint.words = Uint32Array.from(paint.kinds, word);
  paint.trackWord = word(paint.track);
  paint.hatchWord = word(paint.hatch);
  paint.text = paint.kinds.map(css => {
    const [r, g, b] = [1, 3, 5].map(i => parseInt(css.slice(i, i + 2), 16));
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#10141a' : '#ffffff';
  });
  const tile = new OffscreenCanvas(6, 6), c = tile.getContext('2d');
  c.fillStyle = paint.track;
  c.fillRect(0, 0, 6, 6);
  c.strokeStyle = paint.hatch;
  for (const d of [-6, 0, 6]) { c.beginPath(); c.moveTo(d - 1, 7); c.lineTo(d + 7, -1); c.stroke(); }
  paint.idle = tile;
}

// ---- Thin rows and shares are images of view.pixels columns, kept until the view or the theme changes.

const scratch = document.createElement('canvas');
const idleWord = (x, y) => ((x + y) % 8 === 0 ? paint.hatchWord : paint.trackWord);

/// Mixes two ABGR colours: `cover` of `b` over `a`.
function mixed(a, b, cover) {
  const part = shift => Math.round(((a >> shift) & 255) * (1 - cover) + ((b >> shift) & 255) * cover) << shift;
  return (0xff000000 | part(16) | part(8) | part(0)) >>> 0;
}

/// Draws the row's image of `lines` lines. If it was dropped, fill(words) makes it again.
function blit(panel, row, lines, fill) {
  if (!row.image || row.version !== view.version || row.image.height !== lines) {
    row.image = new ImageData(view.pixels, lines);
    row.version = view.version;
    fill(new Uint32Array(row.image.data.buffer));
  }
  if (scratch.width !== view.pixels || scratch.height < lines) { scratch.width = view.pixels; scratch.height = Math.max(lines, scratch.height); }
  scratch.getContext('2d').putImageData(row.image, 0, 0);
  panel.context.imageSmoothingEnabled = false;
  panel.context.drawImage(scratch, 0, 0, view.pixels, lines, NAMES, row.y, view.width, row.height);
}

/// Device pixels of the timeline's begin and end.
function edges(panel) {
  const first = Math.max(0, Math.round(-view.from * view.scale));
  return [first, Math.max(first, Math.min(view.pixels, Math.round((panel.timeline.duration - view.from) * view.scale)))];
}

function drawDense(panel, row) {
  const width = view.pixels, t = panel.timeline, [first, last] = edges(panel);
  blit(panel, row, row.lanes.length, out => {
    row.lanes.forEach((lane, i) => {
      for (let x = first; x < last; ++x) out[i * width + x] = idleWord(x, i);
      const draw = (kind, x0, x1, cover) => {
        for (let at = i * width + x0; at < i * width + x1; ++at) out[at] = cover === 1 ? paint.words[kind] : mixed(out[at], paint.words[kind], cover);
      };
      t.containers[lane].visit(view, t.kindOf, draw);
      t.leaves[lane].visit(view, t.kindOf, draw);
    });
  });
  return row.lanes.length;
}

/// Returns the number of lanes that each kind covers in each device pixel: sums[kind][pixel]. A container counts where it
/// is empty.
function sharesOf(panel, row) {
  if (row.sums && row.sumsVersion === view.version) return row.sums;
  const width = view.pixels, t = panel.timeline;
  const sums = data.kinds.map(() => new Float32Array(width)), outer = new Float32Array(width), inner = new Float32Array(width);
  for (const lane of row.lanes) {
    outer.fill(0);
    inner.fill(0);
    t.containers[lane].visit(view, t.kindOf, (kind, x0, x1, cover) => { for (let x = x0; x < x1; ++x) outer[x] = Math.min(1, outer[x] + cover); });
    t.leaves[lane].visit(view, t.kindOf, (kind, x0, x1, cover) => {
      for (let x = x0; x < x1; ++x) { sums[kind][x] += cover; inner[x] += cover; }
    });
    for (let x = 0; x < width; ++x) sums[KIND.kernel][x] += Math.max(0, outer[x] - inner[x]);
  }
  row.sums = sums;
  row.sumsVersion = view.version;
  return sums;
}

/// Order of a stacked chart: computation at the bottom, waiting at the top, idle time free above.
const PILE = ['compute', 'load', 'store', 'put', 'get', 'copy', 'transfer', 'signal', 'launch', 'kernel', 'wait'].map(name => KIND[name]);

function drawShare(panel, row) {
  const sums = sharesOf(panel, row), width = view.pixels, n = row.lanes.length, [first, last] = edges(panel);
  const lines = Math.round(row.height * view.dpr);
  blit(panel, row, lines, out => {
    for (let x = first; x < last; ++x) {
      let y = lines, sum = 0;
      for (const kind of PILE) {
        sum += sums[kind][x];
        const top = Math.max(0, lines - Math.round(lines * sum / n));
        while (y > top) out[--y * width + x] = paint.words[kind];
      }
      while (y > 0) { --y; out[y * width + x] = idleWord(x, y); }
    }
  });
  return n;
}

function trackOf(panel, row) {
  const x0 = Math.max(NAMES, xOf(0)), x1 = Math.min(NAMES + view.width, xOf(panel.timeline.duration));
  const c = panel.context;
  if (x1 <= x0) return;
  c.fillStyle = c.createPattern(paint.idle, 'repeat');
  c.fillRect(x0, row.y, x1 - x0, row.height);
}

/// One lane; a bar's height is the share of the time that it covers.
function drawLane(panel, row) {
  const c = panel.context, t = panel.timeline, dpr = view.dpr, [lane] = row.lanes;
  trackOf(panel, row);
  const bar = (kind, x0, x1, cover, base, style) => {
    c.fillStyle = paint.kinds[kind];
    const gap = row.type === 'lane' && x1 - x0 > 4 * dpr ? 0.5 : 0, height = Math.max(1, cover * row.height);
    c.fillRect(NAMES + x0 / dpr + gap, Math.max(row.y, row.y + row.height * (1 - base) - height), (x1 - x0) / dpr - 2 * gap, height);
    if (style >= 0 && row.type === 'lane' && x1 - x0 > 34 * dpr) drawLabel(c, t, style, x0 / dpr, x1 / dpr, row);
  };
  t.containers[lane].visit(view, t.kindOf, (kind, x0, x1, cover, base) => bar(kind, x0, x1, cover, base, -1));
  t.leaves[lane].visit(view, t.kindOf, bar);
  return 1;
}

function drawLabel(c, t, style, x0, x1, row) {
  const text = t.labels[t.styles[style][1]] || data.kinds[t.kindOf[style]];
  const room = x1 - x0 - 8;
  let shown = text;
  c.font = '11px system-ui, "DejaVu Sans", sans-serif';
  if (c.measureText(shown).width > room) {
    const letters = Math.floor(room / 6.5) - 1;
    if (letters < 3) return;
    shown = text.slice(0, letters) + '\u2026';
  }
  c.fillStyle = paint.text[t.kindOf[style]];
  c.textBaseline = 'middle';
  c.fillText(shown, NAMES + x0 + 4, row.y + row.height / 2 + 0.5);
}

/// Busy shares of nodes over time, from the colour of idle time to that of a transfer.
function drawHeat(panel, row) {
  if (!row.map) {
    row.map = document.createElement('canvas');
    row.map.width = row.bins;
    row.map.height = row.nodes;
  }
  if (row.mapTheme !== paint.bg) {
    const c = row.map.getContext('2d'), image = c.createImageData(row.bins, row.nodes);
    const words = new Uint32Array(image.data.buffer);
    row.percents.forEach((percent, i) => { words[i] = mixed(paint.trackWord, paint.words[KIND.transfer], percent / 100); });
    c.putImageData(image, 0, 0);
    row.mapTheme = paint.bg;
  }
  const x0 = xOf(0), width = xOf(panel.timeline.duration) - x0;
  panel.context.imageSmoothingEnabled = false;
  panel.context.drawImage(row.map, x0, row.y, width, row.height);
  return 0;
}

const DRAW = {heat: drawHeat, dense: drawDense, share: drawShare, strip: drawLane, lane: drawLane};

// ---- Axis and grid.

function ticks() {
  const step = 10 ** Math.floor(Math.log10((view.to - view.from) / view.width * 90));
  const nice = [1, 2, 5, 10, 20].find(f => f * step * view.scale / view.dpr >= 80) * step;
  const list = [];
  for (let i = Math.ceil(view.from / nice); i * nice <= view.to; ++i) list.push(i * nice);
  return {list, nice};
}

function sizeCanvas(canvas, width, height) {
  const w = Math.round(width * view.dpr), h = Math.round(height * view.dpr);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const c = canvas.getContext('2d');
  c.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
  c.clearRect(0, 0, width, height);
  return c;
}

function drawAxis() {
  const canvas = document.getElementById('axis');
  const c = sizeCanvas(canvas, NAMES + view.width + RIGHT + 2, 24);
  c.translate(1, 0);  // the panels' border
  const {list, nice} = ticks();
  const [unit, name] = [[1e12, 's'], [1e9, 'ms'], [1e6, 'us'], [1e3, 'ns'], [1, 'ps']].find(([u]) => nice * 100 >= u && view.to >= u) || [1, 'ps'];
  const digits = Math.max(0, -Math.floor(Math.log10(nice / unit) + 1e-9));
  c.fillStyle = paint.ink2;
  c.strokeStyle = paint.line;
  c.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
  c.textAlign = 'center';
  for (const time of list) {
    const x = xOf(time);
    if (x < NAMES - 1) continue;
    c.fillText((time / unit).toFixed(digits) + ' ' + name, Math.max(x, NAMES + 14), 13);
    c.beginPath();
    c.moveTo(x, 18);
    c.lineTo(x, 24);
    c.stroke();
  }
}

function drawGrid(panel, height) {
  const c = panel.context;
  c.strokeStyle = paint.grid;
  c.lineWidth = 1;
  c.beginPath();
  for (const time of ticks().list) {
    const x = Math.round(xOf(time)) + 0.5;
    if (x < NAMES) continue;
    c.moveTo(x, 0);
    c.lineTo(x, height);
  }
  c.stroke();
}

/// Draws the rows of a panel that the window shows; all rows (counted, to know that each can be drawn) where `all` is set.
function drawPanel(panel, all) {
  const stick = document.getElementById('bar').offsetHeight;
  const box = panel.rowsBox.getBoundingClientRect();
  const height = Math.min(panel.height, Math.max(100, window.innerHeight - stick));
  const offset = Math.min(Math.max(0, stick - box.top), panel.height - height);
  if (!all && (box.bottom < stick || box.top > window.innerHeight)) return 0;
  panel.canvas.style.top = stick + 'px';
  panel.canvas.style.height = height + 'px';
  const c = sizeCanvas(panel.canvas, box.width, height);
  drawGrid(panel, height);
  c.translate(0, -offset);
  panel.shown = {top: offset, bottom: offset + height};
  let drawn = 0;
  c.save();
  c.beginPath();
  c.rect(NAMES, 0, view.width + RIGHT, panel.height);
  c.clip();
  for (const row of panel.rows) {
    const visible = row.y + row.height >= offset && row.y <= offset + height;
    if (all || visible) drawn += DRAW[row.type](panel, row);
    if (!visible) row.image = row.sums = null;  // the images of a thousand PEs would not fit into memory
  }
  drawMarks(panel);
  c.restore();
  return drawn;
}
