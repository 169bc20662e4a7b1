addEventListener('error', e => { document.body.dataset.error = e.message; });

// ---- Data: typed arrays for each lane, so that a binary search finds the spans of a view.

const data = JSON.parse(document.getElementById('data').textContent);
const KIND = Object.fromEntries(data.kinds.map((name, i) => [name, i]));
const LANE = Object.fromEntries(data.laneKinds.map((name, i) => [name, i]));

/// First index in [0, n) for which `test` holds; `test` must be monotone.
function firstIndex(n, test) {
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

/// Spans in order of begin. `reach[i]` is the latest end up to i: monotone even where spans overlap.
class Spans {
  constructor(flat) {
    const n = flat.length / 3;
    this.size = n;
    this.begin = new Float64Array(n);
    this.end = new Float64Array(n);
    this.reach = new Float64Array(n);
    this.style = new Uint32Array(n);
    let at = 0, reach = 0;
    for (let i = 0; i < n; ++i) {
      this.style[i] = flat[3 * i];
      this.begin[i] = at + flat[3 * i + 1];
      this.end[i] = at = this.begin[i] + flat[3 * i + 2];
      this.reach[i] = reach = Math.max(reach, at);
    }
  }

  /// The span at `time`, or the nearest empty one within `slack`; -1 for none.
  at(time, slack) {
    for (let i = firstIndex(this.size, k => this.begin[k] > time + slack) - 1; i >= 0 && this.reach[i] >= time - slack; --i) {
      if (this.end[i] >= time || this.end[i] + slack >= time) return i;
    }
    return -1;
  }

  /// Calls draw(kind, x0, x1, cover, base, style) for visible spans, in device pixels. A span wider than a pixel covers
  /// whole pixels. Narrower spans cover their share of one: the kinds of a pixel follow each other from `base`, in [0, 1].
  visit(view, kindOf, draw) {
    const {from, to, scale} = view, sums = new Float64Array(2 * data.kinds.length), kinds = data.kinds.length;
    let pixel = -1, free = 0, used = false;  // the pixel that `sums` is of; pixels before `free` are drawn
    const flush = () => {
      let base = 0;
      for (let kind = 0; used && kind < kinds; ++kind) {
        const cover = Math.min(sums[kind], 1 - base);
        if (sums[kind] > 0 && pixel >= free && pixel < view.pixels) draw(kind, pixel, pixel + 1, cover, base, -1);
        base += sums[kind] > 0 ? cover : 0;
      }
      sums.copyWithin(0, kinds);
      sums.fill(0, kinds);
      ++pixel;
      used = sums.some(sum => sum > 0);
    };
    for (let i = firstIndex(this.size, k => this.reach[k] > from); i < this.size && this.begin[i] < to; ++i) {
      const x0 = (this.begin[i] - from) * scale, x1 = (this.end[i] - from) * scale, kind = kindOf[this.style[i]];
      const first = Math.floor(x0);
      while (used && pixel < first) flush();
      if (x1 - x0 >= 1) {
        const end = Math.min(view.pixels, Math.round(x1));
        draw(kind, Math.max(0, Math.round(x0)), end, 1, 0, this.style[i]);
        free = Math.max(free, end);
        continue;
      }
      if (!used) pixel = first;
      used = true;
      sums[kind] += Math.max(1e-6, Math.min(x1, first + 1) - x0);  // an empty span is there, too
      if (x1 > first + 1) sums[kinds + kind] += x1 - first - 1;
    }
    while (used) flush();
  }
}

class Timeline {
  constructor(json, index) {
    Object.assign(this, json);
    this.index = index;
    this.lanes = json.lanes.map(([pe, kind, name, busy, waiting, bytes]) => ({pe, kind, name, busy, waiting, bytes}));
    json.lanes = null;
    this.leaves = json.spans.map(both => new Spans(both[0]));
    this.containers = json.spans.map(both => new Spans(both[1]));
    this.spans = json.spans = null;
    this.kindOf = Uint8Array.from(this.styles, style => style[0]);
    this.readArrows(json.arrows);
    this.readPath(json.path);
    this.shares = json.shares.map(([name, kind, time]) => ({name, kind, time}));  // the largest first
  }

  readArrows(flat) {
    this.arrows = [];
    this.leaving = this.lanes.map(() => []);
    this.arriving = this.lanes.map(() => []);
    for (let i = 0; i < flat.length; i += 5) {
      const arrow = {fromLane: flat[i], toLane: flat[i + 1], label: this.labels[flat[i + 2]], from: flat[i + 3], to: flat[i + 3] + flat[i + 4]};
      this.leaving[arrow.fromLane].push(arrow);
      this.arriving[arrow.toLane].push(arrow);
      this.arrows.push(arrow);
    }
    for (const list of this.leaving) list.sort((a, b) => a.from - b.from);
    for (const list of this.arriving) list.sort((a, b) => a.to - b.to);
  }

  /// Steps of the critical path with the part of the span that counts: a wait counts from its arrow's arrival.
  readPath(flat) {
    this.steps = [];
    for (let i = 0; i < flat.length; i += 3) {
      const spans = this.leaves[flat[i]], at = flat[i + 1], arrow = this.arrows[flat[i + 2]] || null;
      const kind = this.kindOf[spans.style[at]];
      const begin = arrow && kind === KIND.wait ? arrow.to : spans.begin[at];
      const previous = this.steps[this.steps.length - 1];
      if (arrow && previous) previous.end = Math.max(previous.begin, Math.min(previous.end, arrow.from));
      this.steps.push({lane: flat[i], index: at, arrow, kind, begin, end: spans.end[at]});
    }
  }

  /// Arrows that leave span [begin, end] of a lane or end within it.
  arrowsOf(lane, begin, end) {
    const near = (list, key) => {
      const found = [];
      for (let i = firstIndex(list.length, k => list[k][key] >= begin); i < list.length && list[i][key] <= end; ++i) found.push(list[i]);
      return found;
    };
    const out = near(this.leaving[lane], 'from').filter(a => a.from > begin || begin === end);
    const into = near(this.arriving[lane], 'to').filter(a => !out.includes(a));
    return out.concat(into);
  }
}

const timelines = data.timelines.map((json, i) => new Timeline(json, i));
const longest = Math.max(1, ...timelines.map(t => t.duration));
data.timelines = null;

// ---- Text.

function sized(value, units) {
  const size = Math.abs(value);
  for (const [unit, name] of units) {
    if (size >= unit || unit === 1) {
      const shown = value / unit;
      return (unit === 1 ? Math.round(shown) : Math.abs(shown) >= 99.95 ? shown.toFixed(0) : shown.toPrecision(3)) + ' ' + name;
    }
  }
}
const timeText = time => sized(time, [[1e12, 's'], [1e9, 'ms'], [1e6, 'us'], [1e3, 'ns'], [1, 'ps']]);
const exactText = time => (time / 1e6).toFixed(6).replace(/0{1,5}$/, '') + ' us';
const bytesText = bytes => sized(bytes, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']]);
const rateText = (bytes, time) => sized(bytes / time * 1e12, [[1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1, 'B/s']]);
const percent = share => (share >= 0.995 || share === 0 ? Math.round(100 * share) : (100 * share).toFixed(share < 0.1 ? 1 : 0)) + '%';
