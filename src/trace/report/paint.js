// ---- Colours, read from the style sheet.

const paint = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'card', 'ink', 'ink2', 'line', 'grid', 'track', 'hatch', 'path', 'arrow', 'ends']) {
    paint[name] = style.getPropertyValue('--' + name).trim();
  }
  paint.kinds = data.kinds.map(kind => style.getPropertyValue('--k-' + kind).trim());
  const word = css => parseInt('ff' + css.slice(5, 7) + css.slice(3, 5) + css.slice(1, 3), 16) >>> 0;  // ABGR: little-endian RGBA
  paint.words = Uint32Array.from([paint.track, ...paint.kinds], word);  // by code: 0 is idle, 1 + kind otherwise
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

// ---- Codes: what each of several lanes does at each device pixel, a byte each. Thin rows and shares are made from them.

function codesOf(panel, row) {
  if (row.codes && row.version === view.version) return row.codes;
  const width = view.pixels, t = panel.timeline;
  const codes = row.codes && row.codes.length === width * row.lanes.length ? row.codes.fill(0) : new Uint8Array(width * row.lanes.length);
  row.lanes.forEach((lane, i) => {
    const draw = (style, x0, x1) => codes.fill(1 + t.kindOf[style], i * width + x0, i * width + Math.min(x1, width));
    t.containers[lane].visit(view, draw);
    t.leaves[lane].visit(view, draw);
  });
  row.codes = codes;
  row.version = view.version;
  return codes;
}

const scratch = document.createElement('canvas');
const idleWord = (x, y) => ((x + y) % 8 === 0 ? paint.hatchWord : paint.words[0]);

/// Draws an image of view.pixels x lines device pixels into the row's place.
function blit(panel, row, lines, fill) {
  if (scratch.width !== view.pixels || scratch.height < lines) { scratch.width = view.pixels; scratch.height = Math.max(lines, scratch.height); }
  const c = scratch.getContext('2d');
  const image = c.createImageData(view.pixels, lines);
  fill(new Uint32Array(image.data.buffer));
  c.putImageData(image, 0, 0);
  panel.context.imageSmoothingEnabled = false;
  panel.context.drawImage(scratch, 0, 0, view.pixels, lines, NAMES, row.y, view.width, row.height);
}

function edge(panel) { return Math.round((panel.timeline.duration - view.from) * view.scale); }  // device pixel of the timeline's end

function drawDense(panel, row) {
  const codes = codesOf(panel, row), width = view.pixels, words = paint.words;
  const first = Math.max(0, Math.round(-view.from * view.scale)), last = Math.min(width, edge(panel));
  blit(panel, row, row.lanes.length, out => {
    for (let i = 0; i < row.lanes.length; ++i) {
      for (let x = first; x < last; ++x) {
        const code = codes[i * width + x];
        out[i * width + x] = code ? words[code] : idleWord(x, i);
      }
    }
  });
  return row.lanes.length;
}

/// Order in a pile: what pays at the bottom, waiting at the top, idle free above.
const PILE = ['compute', 'load', 'store', 'put', 'get', 'copy', 'transfer', 'signal', 'launch', 'kernel', 'wait'].map(name => 1 + KIND[name]);

function drawShare(panel, row) {
  const codes = codesOf(panel, row), width = view.pixels, n = row.lanes.length;
  const lines = Math.round(row.height * view.dpr);
  const first = Math.max(0, Math.round(-view.from * view.scale)), last = Math.min(width, edge(panel));
  const counts = new Uint32Array(data.kinds.length + 1);
  blit(panel, row, lines, out => {
    for (let x = first; x < last; ++x) {
      counts.fill(0);
      for (let i = 0; i < n; ++i) ++counts[codes[i * width + x]];
      let y = lines, sum = 0;
      for (const code of PILE) {
        if (counts[code] === 0) continue;
        sum += counts[code];
        const top = lines - Math.round(lines * sum / n);
        while (y > top) out[--y * width + x] = paint.words[code];
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

/// One or several lanes painted over each other in one row (a PE's copy engines, or a single lane).
function drawLanes(panel, row) {
  const c = panel.context, t = panel.timeline, dpr = view.dpr;
  trackOf(panel, row);
  for (const lane of row.lanes) {
    const bar = (style, x0, x1) => {
      c.fillStyle = paint.kinds[t.kindOf[style]];
      const gap = row.type === 'lane' && x1 - x0 > 4 * dpr ? 0.5 : 0;
      c.fillRect(NAMES + x0 / dpr + gap, row.y, (x1 - x0) / dpr - 2 * gap, row.height);
    };
    t.containers[lane].visit(view, bar);
    t.leaves[lane].visit(view, (style, x0, x1) => {
      bar(style, x0, x1);
      if (row.type === 'lane' && x1 - x0 > 34 * dpr) drawLabel(c, t, style, x0 / dpr, x1 / dpr, row);
    });
  }
  return row.lanes.length;
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

const DRAW = {dense: drawDense, share: drawShare, strip: drawLanes, lane: drawLanes};

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
  const [unit, name] = [[1e12, 's'], [1e9, 'ms'], [1e6, '\u00b5s'], [1e3, 'ns'], [1, 'ps']].find(([u]) => nice * 100 >= u && view.to >= u) || [1, 'ps'];
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
    if (!visible) row.codes = null;  // codes of a thousand PEs would not fit the memory
  }
  drawMarks(panel);
  c.restore();
  return drawn;
}
