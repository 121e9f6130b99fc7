// Charts: tables with bars, which work at any width and for screen readers, and the
// distribution of a split.

// A bar from `start` to `end` on a scale from `low` to `high`, and a line at `zero`.
function bar(start, end, low, high, kind, zero) {
  const at = (value) => (100 * (value - low)) / (high - low || 1);
  const left = Math.min(at(start), at(end));
  return svg(
    "svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { x: left, y: 1, width: Math.max(Math.abs(at(end) - at(start)), 0.4), height: 8, class: kind }),
    zero === undefined ? null : svg("line", { x1: at(zero), x2: at(zero), y1: 0, y2: 10, class: "axis" }),
  );
}

function barRow(name, cell, text, isTotal) {
  return el(
    "tr",
    isTotal ? { class: "total" } : {},
    el("th", { scope: "row" }, soft(name)),
    el("td", { class: "bar" }, cell),
    el("td", { class: "number" }, text),
  );
}

function barTable(caption, head, rows) {
  return el(
    "table",
    { class: "bars" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: i === 0 ? "text" : i === 1 ? "" : "number" }, text)))),
    el("tbody", {}, rows),
  );
}

// The bar of a node in the tree; parts are kind, start and width, from 0 to 1.
function meter(...parts) {
  return svg(
    "svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    parts.map(([kind, start, width]) => svg("rect", { x: 100 * start, width: 100 * width, height: 10, class: kind })),
  );
}

// Weights of a split or slopes of a leaf: bars to both sides of zero.
function signedBars(caption, items) {
  const most = Math.max(...items.map((item) => Math.abs(item.value)), 1e-300);
  const rows = items.map((item) => {
    const kind = item.value < 0 ? "down" : "up";
    const row = barRow(item.name, bar(0, item.value, -most, most, kind, 0), number(item.value));
    row.append(el("td", { class: "number" }, number(item.raw)));
    return row;
  });
  return barTable(caption, ["feature", "", "weight", "raw"], rows);
}

// From the base value to the score, step by step. Numbers are whole units of the last decimal
// shown, so that what the page shows adds up exactly. A vote has a scale from 0 to 1.
function waterfall(data, caption, base, steps, score) {
  const unit = 10 ** data.digits;
  const ends = [base];
  for (const step of steps) ends.push(ends.at(-1) + step.value);
  let low = Math.min(0, ...ends);
  let high = Math.max(...ends, data.has_votes ? unit : 0);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const isFar = !data.has_votes && least * most > 0 && Math.min(Math.abs(least), Math.abs(most)) > 3 * (most - least);
  if (isFar) [low, high] = [least - 0.3 * (most - least), most + 0.3 * (most - least)]; // changes would be too small to see beside the base
  const origin = Math.min(Math.max(0, low), high);
  const show = (value) => (value / unit).toFixed(data.digits).replace("-", MINUS);
  const rows = [barRow(data.start, bar(origin, base, low, high, "neutral"), show(base))];
  steps.forEach((step, i) => {
    const kind = step.value < 0 ? "down" : "up";
    const cell = bar(ends[i], ends[i + 1], low, high, kind);
    rows.push(barRow(step.name, cell, signed(step.value / unit, data.digits)));
  });
  rows.push(barRow(data.score, bar(origin, score, low, high, "neutral"), show(score), true));
  return barTable(caption, ["feature", "", "adds"], rows);
}

// Rows along the projection: positive ones upwards, negative ones downwards.
function distribution(split, width, name) {
  const [first, step, positive, negative] = split.histogram;
  const height = 190;
  const middle = 86;
  const margin = 10;
  const n = positive.length;
  const last = first + step * n;
  const most = Math.max(...positive, ...negative, 1);
  const x = (value) => margin + ((width - 2 * margin) * (value - first)) / (last - first || 1);
  const clamp = (value) => Math.min(Math.max(value, margin + 14), width - margin - 14);
  const unit = (middle - 14) / most;
  const parts = [];
  for (const [side, kind] of split.pure) {
    const from = side === "left" ? margin : x(split.threshold);
    const to = side === "left" ? x(split.threshold) : width - margin;
    parts.push(svg("rect", { x: from, y: 8, width: Math.max(to - from, 0), height: 2 * middle - 16, class: "pure " + kind }));
  }
  for (let i = 0; i < n; i += 1) {
    const left = x(first + i * step);
    const size = x(first + (i + 1) * step) - left;
    parts.push(svg("rect", { x: left, y: middle - unit * positive[i], width: size, height: unit * positive[i], class: "positive" }));
    parts.push(svg("rect", { x: left, y: middle, width: size, height: unit * negative[i], class: "negative" }));
  }
  parts.push(svg("line", { x1: margin, x2: width - margin, y1: middle, y2: middle, class: "axis" }));
  split.extremes.forEach((value, k) => {
    if (value === null || value < first - step || value > last + step) return;
    const [at, tip] = [x(value), k < 2 ? -7 : 7];
    const points = `${at},${middle} ${at - 5},${middle - tip} ${at + 5},${middle - tip}`;
    parts.push(svg("polygon", { points, class: "mark " + (k < 2 ? "positive" : "negative") }));
  });
  const cut = x(split.threshold);
  parts.push(svg("line", { x1: cut, x2: cut, y1: 4, y2: 2 * middle - 4, class: "cut" }));
  parts.push(svg("text", { x: clamp(cut), y: height - 4, "text-anchor": "middle" }, "c = " + number(split.threshold)));
  if (cut - margin > 90) parts.push(svg("text", { x: margin, y: height - 4 }, "← left"));
  if (width - margin - cut > 90) parts.push(svg("text", { x: width - margin, y: height - 4, "text-anchor": "end" }, "right →"));
  const label = `${name}: ${count(sum(positive), "row")}; all other classes: ${count(sum(negative), "row")}; threshold ${number(split.threshold)}`;
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, parts);
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function key(kind, text) {
  return el("span", { class: "key" }, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, class: kind })), text);
}
