// ---- Marks over the rows: the end, the critical path, arrows, and the selected or pointed span.

const FEW = 80;  // up to this number all visible arrows are drawn

function drawMarks(panel) {
  drawEnd(panel);
  if (showPath) drawPath(panel);
  const mode = document.getElementById('arrows').value;
  if (mode !== 'one') {
    const seen = visibleArrows(panel, mode === 'all' ? 20000 : FEW + 1);
    if (mode === 'all' || seen.length <= FEW) for (const arrow of seen) drawArrow(panel, arrow, paint.arrow, 1, 0.55);
  }
  drawFound(panel);
  drawRange(panel);
  for (const mark of [hovered, held]) {
    if (mark && mark.panel === panel) drawHeld(panel, mark, mark === held);
  }
}

function drawEnd(panel) {
  const c = panel.context, x = xOf(panel.timeline.duration);
  if (x < NAMES || x > NAMES + view.width + RIGHT) return;
  c.strokeStyle = paint.ends;
  c.lineWidth = 1.5;
  c.beginPath();
  c.moveTo(x, panel.shown.top);
  c.lineTo(x, panel.shown.bottom);
  c.stroke();
  const saved = longest - panel.timeline.duration;
  if (saved <= 0) return;
  c.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
  c.fillStyle = paint.ink;
  c.textBaseline = 'alphabetic';
  const text = [timeText(panel.timeline.duration), timeText(saved) + ' less'];
  if (x + 6 + c.measureText(text[1]).width > NAMES + view.width + RIGHT) return;
  c.fillText(text[0], x + 6, panel.shown.top + 18);
  c.fillStyle = paint.ink2;
  c.fillText(text[1], x + 6, panel.shown.top + 34);
}

/// Arrows that touch the visible range, at most `most`.
function visibleArrows(panel, most) {
  const found = [];
  for (const arrow of panel.timeline.arrows) {
    if (arrow.to < view.from || arrow.from > view.to) continue;
    found.push(arrow);
    if (found.length >= most) break;
  }
  return found;
}

function drawArrow(panel, arrow, colour, width, strength) {
  const c = panel.context;
  const a = panel.lanePlace[arrow.fromLane], b = panel.lanePlace[arrow.toLane];
  const x0 = xOf(arrow.from), y0 = a.y + a.height / 2, x1 = xOf(arrow.to), y1 = b.y + b.height / 2;
  const bend = Math.min(60, Math.max(8, Math.abs(x1 - x0) / 2, Math.abs(y1 - y0) / 8));
  c.globalAlpha = strength;
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = width;
  c.beginPath();
  c.moveTo(x0, y0);
  c.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  c.stroke();
  c.beginPath();
  c.moveTo(x1, y1);
  c.lineTo(x1 - 6 - width, y1 - 2 - width);
  c.lineTo(x1 - 6 - width, y1 + 2 + width);
  c.fill();
  c.globalAlpha = 1;
}

function drawPath(panel) {
  const c = panel.context, steps = panel.timeline.steps;
  const first = firstIndex(steps.length, i => steps[i].end >= view.from);
  for (let i = first; i < steps.length && steps[i].begin <= view.to; ++i) {
    const step = steps[i], place = panel.lanePlace[step.lane];
    if (step.arrow) drawArrow(panel, step.arrow, paint.path, 1.5, 1);
    const x0 = Math.max(NAMES - 5, xOf(step.begin)), x1 = Math.min(NAMES + view.width + 5, xOf(step.end));
    if (x1 < x0) continue;
    c.fillStyle = c.strokeStyle = paint.path;
    if (place.height < 12) {
      c.fillRect(x0, place.y + place.height / 2 - 1.25, Math.max(1, x1 - x0), 2.5);
    } else {
      const tall = place.height > ROW;
      c.fillRect(x0, place.y + place.height - (tall ? 3 : 2.5), Math.max(1, x1 - x0), tall ? 3 : 2.5);
      if (!tall) c.fillRect(x0, place.y, Math.max(1, x1 - x0), 1.5);
    }
  }
}

function drawHeld(panel, mark, strong) {
  const c = panel.context, t = panel.timeline;
  if (mark.lane === undefined) return;
  const place = panel.lanePlace[mark.lane];
  if (mark.begin !== undefined && !mark.idle) {
    const x0 = Math.max(NAMES - 3, xOf(mark.begin)), x1 = Math.min(NAMES + view.width + 3, xOf(mark.end));
    c.strokeStyle = paint.ink;
    c.lineWidth = strong ? 2 : 1.25;
    c.strokeRect(x0, place.y - 0.5, Math.max(1, x1 - x0), place.height + 1);
    for (const arrow of t.arrowsOf(mark.lane, mark.begin, mark.end).slice(0, 400)) drawArrow(panel, arrow, paint.ink, strong ? 2 : 1.5, 0.95);
  }
}

// ---- The item under a point.

function rowAt(panel, y) {
  return panel.rows.find(row => y >= row.y && y < row.y + row.height);
}

/// The span of a lane at a time, else the idle time there. A thin span may be missed by `slack` picoseconds.
function spanAt(panel, lane, time, slack) {
  const t = panel.timeline;
  if (time < 0 || time > t.duration) return null;
  for (const spans of [t.leaves[lane], t.containers[lane]]) {
    let index = spans.at(time, 0);
    if (index < 0 && spans === t.leaves[lane]) index = spans.at(time, slack);
    if (index >= 0) return markOf(panel, lane, spans, index);
  }
  const spans = t.leaves[lane];
  const next = firstIndex(spans.size, i => spans.begin[i] > time);
  const begin = next > 0 ? spans.reach[next - 1] : 0, end = next < spans.size ? spans.begin[next] : t.duration;
  return {panel, lane, idle: true, begin, end};
}

function markOf(panel, lane, spans, index) {
  return {panel, lane, spans, index, begin: spans.begin[index], end: spans.end[index], style: spans.style[index]};
}

function markAt(panel, x, y) {
  const row = rowAt(panel, y);
  if (!row || x < NAMES) return null;
  const time = timeOf(x), slack = 2 * view.dpr / view.scale;
  if (row.type === 'share' || row.type === 'heat') return time >= 0 && time <= panel.timeline.duration ? {panel, row, time, y} : null;
  if (row.type === 'dense') return spanAt(panel, row.lanes[Math.min(row.lanes.length - 1, Math.floor((y - row.y) / row.height * row.lanes.length))], time, slack);
  const marks = row.lanes.map(lane => spanAt(panel, lane, time, slack));
  return marks.find(mark => mark && !mark.idle) || marks[0];
}

/// Lines of the tooltip: [head, colour, [[key, value], ...]].
function describe(mark) {
  const t = mark.panel.timeline;
  if (mark.row) return mark.row.type === 'heat' ? describeHeat(mark) : describeShare(mark);
  const lane = t.lanes[mark.lane], where = `PE ${lane.pe}, ${lane.name}`;
  const times = [['from', exactText(mark.begin)], ['to', exactText(mark.end)], ['duration', timeText(mark.end - mark.begin)]];
  if (mark.idle) return ['idle', paint.hatch, [['lane', where], ...times]];
  const [kind, label, bytes] = t.styles[mark.style];
  const lines = [['kind', data.kinds[kind]], ['lane', where], ...times];
  if (bytes) {
    lines.push(['bytes', bytesText(bytes)]);
    if (mark.end > mark.begin) lines.push(['rate', rateText(bytes, mark.end - mark.begin)]);
  }
  const arrows = t.arrowsOf(mark.lane, mark.begin, mark.end);
  for (const arrow of arrows.slice(0, 4)) {
    const into = arrow.toLane === mark.lane && arrow.to >= mark.begin && arrow.to <= mark.end;
    const other = t.lanes[into ? arrow.fromLane : arrow.toLane];
    lines.push([into ? 'let go by' : 'lets go', `${arrow.label ? arrow.label + ', ' : ''}PE ${other.pe}, ${other.name}`]);
  }
  if (arrows.length > 4) lines.push(['', `and ${arrows.length - 4} more`]);
  return [t.labels[label] || data.kinds[kind], paint.kinds[kind], lines];
}

function describeHeat({panel, row, time, y}) {
  const node = Math.min(row.nodes - 1, Math.floor((y - row.y) / row.height * row.nodes));
  const bin = Math.min(row.bins - 1, Math.floor(time / panel.timeline.duration * row.bins));
  const line = row.percents.slice(node * row.bins, (node + 1) * row.bins);
  const whole = line.reduce((sum, percent) => sum + percent, 0) / row.bins;
  const first = node * row.pesPerNode;
  return [`node ${node}, ${row.name}`, paint.kinds[KIND.transfer], [['PEs', `${first} to ${first + row.pesPerNode - 1}`],
    ['busy then', line[bin] + '%'], ['over the whole time', whole.toFixed(1) + '%']]];
}

function describeShare({panel, row, time}) {
  const sums = sharesOf(panel, row), x = Math.floor((time - view.from) * view.scale), n = row.lanes.length;
  const shares = data.kinds.map((name, kind) => [name, sums[kind][x] || 0]);
  shares.push(['idle', Math.max(0, n - shares.reduce((sum, share) => sum + share[1], 0))]);
  const lines = shares.filter(share => share[1] > 0.001 * n).sort((a, b) => b[1] - a[1]).map(([name, lanes]) => [name, percent(lanes / n)]);
  const pe = panel.timeline.lanes[row.lanes[0]].pe;
  return [`PE ${pe}, ${row.lanes.length} lanes at ${timeText(time)}`, paint.hatch, lines];
}
