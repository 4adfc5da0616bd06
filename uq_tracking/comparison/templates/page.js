"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";
  const COLORS = 8;
  const hiddenMethods = new Set();
  const hiddenRuns = new Set();
  const single = document.getElementById("single-runs");
  const recalibrated = document.getElementById("recalibrated");
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // ---------- small helpers ----------

  function element(name, attributes = {}, text = null) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  }

  function draw(parent, name, attributes = {}, text = null) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  // The same rules as format_score of the package, so that a number reads alike in the table and in a tip.
  function shown(value, digits = 4) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    let text;
    if (size >= Math.pow(10, digits - 1) && size < 1e8) text = Math.round(size).toLocaleString("en-US");
    else if (Number(size.toPrecision(digits)) >= 1e8 || Number(size.toPrecision(digits)) < 1e-4) text = size.toExponential(digits - 1).replace("+", "");
    else text = plain(size, digits);
    return ((value < 0 ? "-" : "") + text).replaceAll("-", "\u2212");
  }

  function plain(size, digits) {
    const rounded = Number(size.toPrecision(digits));
    const before = Math.floor(Math.log10(rounded) + 1e-12) + 1;
    return rounded.toLocaleString("en-US", { minimumFractionDigits: Math.max(0, digits - before), maximumFractionDigits: Math.max(0, digits - before) });
  }

  function ticks(low, high, wanted = 5) {
    const span = high - low;
    if (!(span > 0)) return [low];
    const power = Math.pow(10, Math.floor(Math.log10(span / wanted)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((size) => span / size <= wanted + 0.5) || 10 * power;
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
    return found;
  }

  function tickText(value, step) {
    const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
    const text = Math.abs(value) >= 1e5 ? value.toExponential(1) : value.toFixed(digits);
    return (Number(text) === 0 ? "0" : text).replace("-", "\u2212");
  }

  const color = (method) => `c${data.looks[method] % COLORS}`;
  const look = (method) => `${color(method)} d${Math.min(Math.floor(data.looks[method] / COLORS), 3)}`;

  // ---------- tooltips ----------

  function showTip(x, y, content) {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 16 + box.width > window.innerWidth ? x - box.width - 16 : x + 16;
    const top = Math.min(y + 14, window.innerHeight - box.height - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }

  const hideTip = () => { tip.hidden = true; };

  function explain(key) {
    const metric = data.metrics[key];
    const content = [element("b", {}, `${key} ${metric.mark}`), element("div", {}, metric.summary)];
    if (metric.formula) content.push(element("div", { class: "formula" }, metric.formula));
    const facts = [`better: ${metric.better}`];
    if (metric.unit) facts.push(`unit: ${metric.unit}`);
    if (metric.source) facts.push(metric.source);
    content.push(element("div", { class: "quiet" }, facts.join(" \u00b7 ")));
    return content;
  }

  for (const button of all(".sort[data-metric]")) {
    const show = () => {
      const box = button.getBoundingClientRect();
      showTip(box.left, box.bottom, explain(button.dataset.metric));
    };
    button.addEventListener("mouseenter", show);
    button.addEventListener("focus", show);
    button.addEventListener("mouseleave", hideTip);
    button.addEventListener("blur", hideTip);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  window.addEventListener("scroll", hideTip, { passive: true });

  // ---------- which metrics are shown ----------

  let family = "headline";
  const familyButtons = all(".families button");

  function metricShown(node) {
    if (family === "all") return true;
    return family === "headline" ? node.hasAttribute("data-headline") : node.dataset.family === family;
  }

  function applyFamily() {
    for (const node of all("[data-key]")) node.hidden = !metricShown(node);
    for (const button of familyButtons) button.setAttribute("aria-pressed", String(button.dataset.family === family));
    drawDifferences();
  }

  for (const button of familyButtons) {
    button.addEventListener("click", () => { family = button.dataset.family; applyFamily(); });
  }

  // ---------- sorting ----------

  const table = document.getElementById("scores-table");
  const body = table.tBodies[table.tBodies.length - 1];

  function sortBy(header, place) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    const key = (row) => {
      if (place === 0) return row.dataset.name;
      const value = row.cells[place].dataset.sort;
      return value === undefined ? null : Number(value);
    };
    const compare = (a, b) => {
      const [one, other] = [key(a), key(b)];
      if (one === null || other === null) return (one === null) - (other === null);
      return sign * (typeof one === "string" ? one.localeCompare(other, undefined, { numeric: true }) : one - other);
    };
    for (const row of all("tr.method", body).sort(compare)) {
      body.append(row, ...all(`tr[data-parent="${row.dataset.method}"]`, body));
    }
  }

  all("thead th", table).forEach((header, place) => {
    header.querySelector(".sort").addEventListener("click", () => sortBy(header, place));
  });

  // ---------- which methods and runs are shown ----------

  function setMethod(method, on) {
    if (on) hiddenMethods.delete(method);
    else hiddenMethods.add(method);
  }

  function applyMethods() {
    for (const chip of all(".chip")) chip.setAttribute("aria-pressed", String(!hiddenMethods.has(Number(chip.dataset.chip))));
    for (const box of all("input[data-toggle]")) box.checked = !hiddenMethods.has(Number(box.dataset.toggle));
    for (const row of all("tr.method", body)) row.hidden = hiddenMethods.has(Number(row.dataset.method));
    for (const row of all("tr.run, tr.recalibrated", body)) {
      const box = row.classList.contains("run") ? single : recalibrated;
      row.hidden = hiddenMethods.has(Number(row.dataset.parent)) || !(box && box.checked);
      row.classList.toggle("off", hiddenRuns.has(row.dataset.run));
    }
    for (const entry of all("[data-of]")) entry.hidden = hiddenMethods.has(Number(entry.dataset.of));
    for (const card of all(".card[data-method]")) card.hidden = hiddenMethods.has(Number(card.dataset.method));
    document.getElementById("toggle-all").textContent = hiddenMethods.size ? `show all ${data.methods.length}` : "hide all";
    drawScatter();
    drawCurves();
    drawDifferences();
  }

  for (const chip of all(".chip")) {
    const method = Number(chip.dataset.chip);
    chip.addEventListener("click", () => { setMethod(method, hiddenMethods.has(method)); applyMethods(); });
    chip.addEventListener("mouseenter", () => emphasise(method));
    chip.addEventListener("mouseleave", () => emphasise(null));
  }
  for (const box of all("input[data-toggle]")) {
    box.addEventListener("change", () => { setMethod(Number(box.dataset.toggle), box.checked); applyMethods(); });
  }
  for (const box of all("input[data-toggle-run]")) {
    box.addEventListener("change", () => {
      const run = box.closest("tr").dataset.run;
      if (box.checked) hiddenRuns.delete(run);
      else hiddenRuns.add(run);
      applyMethods();
    });
  }
  for (const row of all("tr.method", body)) {
    row.addEventListener("mouseenter", () => emphasise(Number(row.dataset.method)));
    row.addEventListener("mouseleave", () => emphasise(null));
  }
  document.getElementById("toggle-all").addEventListener("click", () => {
    const on = hiddenMethods.size > 0;
    data.methods.forEach((_, method) => setMethod(method, on));
    applyMethods();
  });
  for (const box of [single, recalibrated]) if (box) box.addEventListener("change", applyMethods);

  function emphasise(method) {
    for (const line of all(".run-line")) {
      const own = Number(line.dataset.method) === method;
      line.classList.toggle("strong", method !== null && own);
      line.classList.toggle("faint", method !== null && !own);
    }
  }

  // ---------- curves ----------

  const WIDTH = 420, HEIGHT = 280;
  const MOST_NAMED = 8;
  const shorten = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text);
  const EDGE = { left: 58, right: 12, top: 10, bottom: 42 };

  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (!(low <= high)) return [0, 1];
    if (low === high) return [low - (0.1 * Math.abs(low) || 0.5), high + (0.1 * Math.abs(low) || 0.5)];
    return [low, high];
  }

  function frame(svg, x, y, xLabel, yLabel, { width = WIDTH, height = HEIGHT, labels = [] } = {}) {
    const [bottom, left] = [height - EDGE.bottom, EDGE.left];
    const right = width - EDGE.right;
    const every = Math.ceil(labels.length / MOST_NAMED), letters = Math.max(4, Math.floor(60 / Math.min(labels.length, MOST_NAMED)));
    const xTicks = labels.length ? labels.map((_, k) => k).filter((k) => k % every === 0) : ticks(...x.domain), yTicks = ticks(...y.domain);
    xTicks.forEach((value) => {
      draw(svg, "line", { class: "tick", x1: x(value), x2: x(value), y1: EDGE.top, y2: bottom });
      const text = labels.length ? shorten(labels[value], letters) : tickText(value, xTicks[1] - xTicks[0] || 1);
      draw(svg, "text", { x: x(value), y: bottom + 15, "text-anchor": "middle" }, text);
    });
    yTicks.forEach((value) => {
      draw(svg, "line", { class: "tick", x1: left, x2: right, y1: y(value), y2: y(value) });
      draw(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, yTicks[1] - yTicks[0] || 1));
    });
    draw(svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    draw(svg, "line", { class: "axis", x1: left, x2: left, y1: EDGE.top, y2: bottom });
    draw(svg, "text", { class: "label", x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, xLabel);
    draw(svg, "text", { class: "label", x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${(EDGE.top + bottom) / 2}) rotate(-90)` }, yLabel);
  }

  function scale(domain, from, to) {
    const place = (value) => from + (value - domain[0]) / (domain[1] - domain[0]) * (to - from);
    place.domain = domain;
    place.invert = (at) => domain[0] + (at - from) / (to - from) * (domain[1] - domain[0]);
    return place;
  }

  function path(xs, ys, x, y) {
    // A jump across the whole picture is a pole of the definition, not a line.
    const [low, high] = y.domain;
    let text = "", before = null;
    xs.forEach((value, k) => {
      const side = ys[k] < low ? -1 : ys[k] > high ? 1 : 0;
      const cut = before === null || before * side < 0;
      const height = Math.max(Math.min(ys[k], high + 3 * (high - low)), low - 3 * (high - low));
      text += `${cut ? "M" : "L"}${x(value).toFixed(2)} ${y(height).toFixed(2)}`;
      before = side;
    });
    return text;
  }

  const visible = (line) => !hiddenMethods.has(line.method) && !hiddenRuns.has(line.run);

  function makePlot(curve, place) {
    const card = element("div", { class: "plot", "data-curve": curve.name });
    card.append(element("h3", { title: curve.name }, curve.title));
    document.getElementById("curve-grid").append(card);
    offerFiles(card, curve.name, curve.title, () => curveRows(curve));
    return { curve, card, place };
  }

  function drawPlot({ curve, card, place }) {
    card.querySelector("svg")?.remove();
    const svg = draw(card, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${curve.title}, ${curve.name}` });
    const lines = curve.lines.filter(visible);
    const named = curve.labels.length > 0;
    const xDomain = named ? [-0.5, curve.labels.length - 0.5] : extent((lines.length ? lines : curve.lines).flatMap((line) => curve.x[line.x]));
    const heights = lines.flatMap((line) => line.y);
    const bands = lines.flatMap((line) => [...(line.low || []), ...(line.high || [])]);
    let yDomain = extent([...(heights.length ? heights : curve.lines.flatMap((line) => line.y)), ...bands, ...curve.levels]);
    const pad = 0.04 * (yDomain[1] - yDomain[0]);
    if (curve.diagonal && alike(xDomain, yDomain)) xDomain.splice(0, 2, ...(yDomain = rounded(extent([...xDomain, ...yDomain]))));
    else yDomain = curve.y_limits || [yDomain[0] - pad, yDomain[1] + pad];
    const x = scale(xDomain, EDGE.left, WIDTH - EDGE.right);
    const y = scale(yDomain, HEIGHT - EDGE.bottom, EDGE.top);
    frame(svg, x, y, curve.x_label, curve.y_label, { labels: curve.labels });
    const clip = draw(draw(svg, "defs"), "clipPath", { id: `clip-${place}` });
    draw(clip, "rect", { x: EDGE.left, y: EDGE.top, width: WIDTH - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom });
    const inside = draw(svg, "g", { "clip-path": `url(#clip-${place})` });
    // One group, so that bands that lie over each other are as pale as a single one.
    const chance = draw(inside, "g", { class: "chance" });
    for (const k of new Set(lines.map((line) => line.chance))) {
      const band = curve.chances[k];
      if (band) draw(chance, "path", { d: area(curve.x[band.x], band, x, y) });
    }
    for (const line of lines) if (line.low) draw(inside, "path", { class: `band ${color(line.method)}`, d: area(curve.x[line.x], line, x, y) });
    const many = new Map();
    for (const line of lines) many.set(line.method, (many.get(line.method) || 0) + 1);
    for (const line of lines) {
      const xs = curve.x[line.x];
      const classes = `run-line ${look(line.method)} ${many.get(line.method) > 1 ? "many" : ""}`;
      const made = draw(inside, "path", { class: classes, d: named ? "" : path(xs, line.y, x, y) });
      made.dataset.method = line.method;
      made.dataset.run = line.run;
      if (named || xs.length <= 12) xs.forEach((value, k) => draw(inside, "circle", { class: `dot ${color(line.method)}`, cx: x(value), cy: y(line.y[k]), r: 2.8 }));
    }
    // The reference lies above the lines: a perfect model would hide it otherwise.
    if (curve.diagonal) draw(inside, "line", { class: "reference", x1: x(xDomain[0]), y1: y(xDomain[0]), x2: x(xDomain[1]), y2: y(xDomain[1]) });
    for (const level of curve.levels) draw(inside, "line", { class: "reference", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(level), y2: y(level) });
    hover(svg, curve, lines, x, y);
  }

  // Equal axes, where neither leaves the other a corner of the picture; shares from 0 to 1.
  const alike = (x, y) => y[1] - y[0] < 3 * (x[1] - x[0]) && x[1] - x[0] < 3 * (y[1] - y[0]) + 0.5;
  const rounded = ([low, high]) => (low >= 0 && low < 0.1 && high <= 1 && high > 0.9 ? [0, 1] : [low, high]);

  function area(xs, line, x, y) {
    const corner = (heights) => (value, k) => `${x(value).toFixed(2)} ${y(heights[k]).toFixed(2)}`;
    return `M${[...xs.map(corner(line.low)), ...xs.map(corner(line.high)).reverse()].join("L")}Z`;
  }

  function curveRows(curve) {
    const rows = [["method", "run", curve.x_label, curve.y_label, "low", "high"]];
    for (const line of curve.lines.filter(visible)) {
      curve.x[line.x].forEach((value, k) => rows.push([data.methods[line.method], line.run, curve.labels[value] ?? value, line.y[k], line.low ? line.low[k] : "", line.high ? line.high[k] : ""]));
    }
    return rows;
  }

  function nearest(xs, value) {
    let best = 0;
    xs.forEach((other, k) => { if (Math.abs(other - value) < Math.abs(xs[best] - value)) best = k; });
    return best;
  }

  function hover(svg, curve, lines, x, y) {
    const guide = draw(svg, "line", { class: "guide", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" });
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const value = x.invert((event.clientX - box.left) * WIDTH / box.width);
      if (!lines.length || value < x.domain[0] || value > x.domain[1]) { leave(); return; }
      const rows = lines.map((line) => {
        const xs = curve.x[line.x], k = nearest(xs, value);
        return { line, at: xs[k], y: line.y[k] };
      });
      const common = new Set(rows.map((row) => row.at)).size === 1;
      const at = common ? rows[0].at : value;
      guide.setAttribute("x1", x(at));
      guide.setAttribute("x2", x(at));
      guide.setAttribute("visibility", "visible");
      showTip(event.clientX, event.clientY, tipRows(curve, rows, common, at));
    });
    const leave = () => { guide.setAttribute("visibility", "hidden"); hideTip(); };
    svg.addEventListener("pointerleave", leave);
  }

  function tipRows(curve, rows, common, at) {
    const content = [element("b", {}, `${curve.x_label}: ${curve.labels[at] ?? shown(at)}`)];
    const methods = new Map();
    for (const row of rows) {
      if (!methods.has(row.line.method)) methods.set(row.line.method, []);
      methods.get(row.line.method).push(row);
    }
    const summaries = Array.from(methods, ([method, own]) => summary(curve, method, own, common));
    summaries.sort((a, b) => b.height - a.height);
    for (const { method, text } of summaries.slice(0, 16)) {
      const row = element("div", { class: "value-row" });
      row.append(element("span", { class: `swatch ${look(method)}` }), element("span", {}, data.methods[method]));
      row.append(element("span", { class: "number" }, text));
      content.push(row);
    }
    if (summaries.length > 16) content.push(element("div", { class: "quiet" }, `and ${summaries.length - 16} more`));
    return content;
  }

  // One run by its value, several by their mean and range.
  function summary(curve, method, rows, common) {
    const heights = rows.map((row) => row.y);
    const height = heights.reduce((sum, value) => sum + value, 0) / heights.length;
    let text = shown(height);
    if (rows.length > 1) text += ` (${shown(Math.min(...heights))} to ${shown(Math.max(...heights))})`;
    else if (!common) text = `${curve.labels[rows[0].at] ?? shown(rows[0].at)} \u2192 ${text}`;
    return { method, height, text };
  }

  const plots = document.getElementById("curve-grid") ? data.curves.map(makePlot) : [];
  const drawCurves = () => plots.forEach(drawPlot);

  // ---------- differences to the baseline ----------

  function drawDifferences() {
    const grid = document.getElementById("difference-grid");
    if (!grid) return;
    grid.replaceChildren();
    const headers = all("thead th[data-key]", table).filter((header) => !header.hidden);
    for (const header of headers) {
      const items = data.differences.filter((item) => item.metric === header.dataset.key && !hiddenMethods.has(item.method));
      if (items.length) grid.append(forest(header.dataset.key, items));
    }
  }

  // ---------- accuracy against uncertainty ----------

  function drawScatter() {
    const place = document.getElementById("scatter-plot");
    if (!place) return;
    const { x: xKey, y: yKey, levels } = data.scatter;
    const points = data.scatter.points.filter((point) => !hiddenMethods.has(point.method));
    let card = place.querySelector(".plot");
    if (!card) {
      card = element("div", { class: "plot wide", "data-scatter": yKey });
      card.append(element("h3", {}, `${xKey} against ${yKey}`));
      place.append(card);
      offerFiles(card, `${xKey}_${yKey}`, `${xKey} against ${yKey}`, () => scatterRows());
    }
    card.querySelector("svg.drawing")?.remove();
    const width = Math.max(300, Math.min(720, card.clientWidth - 26)), height = 340;
    const svg = draw(card, "svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${xKey} against ${yKey}` });
    const ends = (axis) => points.flatMap((point) => [point[axis], ...(point[`${axis}_interval`] || [])]);
    const padded = ([low, high]) => [low - 0.07 * (high - low), high + 0.12 * (high - low)];
    const x = scale(padded(extent(ends("x"))), EDGE.left, width - EDGE.right);
    const y = scale(padded(extent([...ends("y"), ...levels.map((level) => level.value)])), height - EDGE.bottom, EDGE.top);
    frame(svg, x, y, axisLabel(xKey), axisLabel(yKey), { width, height });
    for (const level of levels) {
      draw(svg, "line", { class: "reference", x1: EDGE.left, x2: width - EDGE.right, y1: y(level.value), y2: y(level.value) });
      draw(svg, "text", { x: EDGE.left + 4, y: y(level.value) - 4 }, level.name);
    }
    for (const point of points) scatterPoint(svg, point, x, y);
    scatterLabels(svg, points, levels, x, y, width);
  }

  const axisLabel = (key) => `${key}${data.metrics[key].unit ? ` [${data.metrics[key].unit}]` : ""} (better: ${data.metrics[key].better})`;

  function scatterRows() {
    const { x, y, points } = data.scatter;
    return [["method", x, y], ...points.filter((point) => !hiddenMethods.has(point.method)).map((point) => [data.methods[point.method], point.x, point.y])];
  }

  function scatterPoint(svg, point, x, y) {
    const group = draw(svg, "g", { class: `${color(point.method)}` });
    if (point.x_interval) draw(group, "line", { class: "interval-line", x1: x(point.x_interval[0]), x2: x(point.x_interval[1]), y1: y(point.y), y2: y(point.y) });
    if (point.y_interval) draw(group, "line", { class: "interval-line", x1: x(point.x), x2: x(point.x), y1: y(point.y_interval[0]), y2: y(point.y_interval[1]) });
    const made = draw(group, "circle", { class: "dot", cx: x(point.x), cy: y(point.y), r: 5 });
    made.dataset.method = point.method;
    made.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, [
      element("b", {}, data.methods[point.method]),
      element("div", {}, `${data.scatter.x} ${shown(point.x)}`),
      element("div", {}, `${data.scatter.y} ${shown(point.y)}`),
    ]));
    made.addEventListener("pointerleave", hideTip);
  }

  // Names above or below their points, as near as there is room; in a crowd pointing tells the rest.
  function scatterLabels(svg, points, levels, x, y, width) {
    const taken = points.map((point) => ({ at: y(point.y) + 3, middle: x(point.x), half: 4 }));
    for (const level of levels) {
      const half = 3.5 * level.name.length;
      taken.push({ at: y(level.value) - 4, middle: EDGE.left + 4 + half, half });
    }
    for (const point of points) {
      const name = data.labels[point.method], half = 3.5 * name.length;
      const middle = Math.max(EDGE.left + half, Math.min(width - EDGE.right - half, x(point.x)));
      const free = (at) => !taken.some((other) => Math.abs(other.at - at) < 12 && Math.abs(other.middle - middle) < half + other.half + 3);
      const at = [-10, 18, -23, 31, -36].map((step) => y(point.y) + step).find((place) => place > EDGE.top + 8 && free(place));
      if (at === undefined) continue;
      taken.push({ at, middle, half });
      draw(svg, "text", { class: `row name ${color(point.method)}`, x: middle, y: at, "text-anchor": "middle" }, name);
    }
  }

  // ---------- files ----------

  function offerFiles(card, name, title, rows) {
    const group = element("span", { class: "files", role: "group", "aria-label": `Save ${title}` });
    const offers = { CSV: () => save(`${name}.csv`, "text/csv", csv(rows())) };
    offers.SVG = () => save(`${name}.svg`, "image/svg+xml", standalone(card, title));
    offers.PNG = () => savePng(`${name}.png`, standalone(card, title));
    for (const [label, act] of Object.entries(offers)) {
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", act);
      group.append(button);
    }
    card.prepend(group);
  }

  function save(name, type, content) {
    const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    const link = element("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // A text that a spreadsheet would take for a formula is marked as text.
  function csv(rows) {
    const cell = (value) => {
      const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
  }

  const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "paint-order"];

  // The picture with its title and a legend, styled by attributes so that any program shows it.
  function standalone(card, title) {
    const svg = card.querySelector("svg"), copy = svg.cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const originals = all("*", svg);
    all("*", copy).forEach((node, k) => {
      const style = getComputedStyle(originals[k]);
      for (const name of COPIED) node.setAttribute(name, style.getPropertyValue(name));
      node.removeAttribute("class");
    });
    const ink = getComputedStyle(document.body).color, font = getComputedStyle(document.body).fontFamily;
    const legend = card.dataset.curve ? data.labels.map((name, method) => [name, method]).filter(([, method]) => !hiddenMethods.has(method)) : [];
    const total = height + 30 + 18 * legend.length;
    const whole = document.createElementNS(SVG, "svg");
    const attributes = { xmlns: SVG, viewBox: `0 -26 ${width} ${total}`, width, height: total };
    for (const [name, value] of Object.entries(attributes)) whole.setAttribute(name, value);
    draw(whole, "rect", { x: 0, y: -26, width, height: total, fill: getComputedStyle(document.body).backgroundColor });
    draw(whole, "text", { x: 8, y: -8, fill: ink, "font-size": 15, "font-weight": 600, "font-family": font }, title);
    whole.append(...copy.childNodes);
    legend.forEach(([name, method], k) => {
      const line = all(`.run-line`, card).find((other) => Number(other.dataset.method) === method);
      const y = height + 14 + 18 * k;
      if (line) draw(whole, "line", { x1: 14, x2: 40, y1: y - 4, y2: y - 4, stroke: getComputedStyle(line).stroke, "stroke-width": 2.5, "stroke-dasharray": getComputedStyle(line).strokeDasharray });
      draw(whole, "text", { x: 48, y, fill: ink, "font-size": 12, "font-family": font }, name);
    });
    return new XMLSerializer().serializeToString(whole);
  }

  async function savePng(name, text) {
    const bytes = new TextEncoder().encode(text);
    const image = new Image();
    image.src = `data:image/svg+xml;base64,${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
    await image.decode();
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((content) => save(name, "image/png", content));
  }

  document.getElementById("save-scores").addEventListener("click", () => save("scores.csv", "text/csv", data.csv));

  // ---------- forests ----------

  const CLASSES = { better: "better", worse: "worse" };

  function forest(key, items) {
    const metric = data.metrics[key];
    const card = element("div", { class: "plot", "data-difference": key });
    const title = element("h3", {}, `${key} ${metric.mark}`);
    if (metric.unit) title.append(element("span", { class: "sub" }, `[${metric.unit}]`));
    card.append(title);
    offerFiles(card, `difference_${key}`, `${key}: difference to ${data.baseline}`, () => [["method", "difference", "low", "high", "relative", "effect", "verdict"], ...items.map((item) => [data.methods[item.method], item.value, ...(item.interval || ["", ""]), item.relative ?? "", item.effect ?? "", item.verdict])]);
    const rowHeight = 24, inner = 30 + rowHeight * items.length, height = inner + 16;
    const left = 24 + 6.5 * Math.max(...items.map((item) => data.labels[item.method].length));
    const svg = draw(card, "svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `differences in ${key}` });
    const ends = items.flatMap((item) => [item.value, ...(item.interval || [])]);
    const [low, high] = extent([0, ...ends]);
    const pad = 0.06 * (high - low);
    const x = scale([low - pad, high + pad], left, WIDTH - 14);
    const marks = ticks(...x.domain, 4);
    for (const value of marks) {
      draw(svg, "line", { class: "tick", x1: x(value), x2: x(value), y1: 4, y2: inner - 22 });
      draw(svg, "text", { x: x(value), y: inner - 7, "text-anchor": "middle" }, tickText(value, marks[1] - marks[0] || 1));
    }
    draw(svg, "line", { class: "axis", x1: x(0), x2: x(0), y1: 4, y2: inner - 22 });
    draw(svg, "text", { class: "label", x: (left + WIDTH - 14) / 2, y: height - 5, "text-anchor": "middle" }, `minus ${data.baseline_label}${metric.unit ? ` [${metric.unit}]` : ""}`);
    items.forEach((item, k) => forestRow(svg, item, x, 16 + rowHeight * k, left));
    return card;
  }

  function forestRow(svg, item, x, y, left) {
    const name = data.methods[item.method];
    draw(svg, "text", { class: "row", x: left - 10, y: y + 4, "text-anchor": "end" }, data.labels[item.method]);
    const group = draw(svg, "g", { class: CLASSES[item.verdict] || "unclear" });
    if (item.interval) draw(group, "line", { class: "interval-line", x1: x(item.interval[0]), x2: x(item.interval[1]), y1: y, y2: y });
    const at = x(item.value);
    // The shape repeats what the color says: a triangle towards better or worse, a circle for neither.
    if (item.verdict === "better") draw(group, "path", { class: "dot", d: `M${at - 5} ${y + 4}h10l-5 -9z` });
    else if (item.verdict === "worse") draw(group, "path", { class: "dot", d: `M${at - 5} ${y - 4}h10l-5 9z` });
    else draw(group, "circle", { class: "dot", cx: at, cy: y, r: 4.2 });
    const area = draw(svg, "rect", { x: 0, y: y - 12, width: WIDTH, height: 24, fill: "transparent" });
    area.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, differenceTip(name, item)));
    area.addEventListener("pointerleave", hideTip);
  }

  function differenceTip(name, item) {
    const range = item.interval ? `${shown(item.interval[0], 4)} to ${shown(item.interval[1], 4)} (${item.how})` : "no interval";
    const verdict = item.verdict === "unknown" ? "" : `, ${item.verdict}`;
    const sizes = [];
    if (item.relative != null) sizes.push(`${item.relative > 0 ? "+" : ""}${shown(100 * item.relative, 2)} %`);
    if (item.effect != null) sizes.push(`d ${shown(item.effect, 2)}`);
    const size = sizes.length ? ` (${sizes.join(", ")})` : "";
    return [element("b", {}, `${name} \u2212 ${item.reference}`), element("div", {}, `${shown(item.value, 4)}${size}${verdict}`), element("div", { class: "quiet" }, range)];
  }

  // ---------- start ----------

  const first = all("thead th[data-key]", table).find((header) => header.dataset.key === data.sorted_by);
  if (first) first.setAttribute("aria-sort", "ascending");
  // More lines than this are hard to follow: the page opens with the best ones, the others are a click away.
  const MOST = 24, OPENED = 12;
  if (data.methods.length > MOST) data.methods.forEach((_, method) => setMethod(method, method < OPENED));
  applyMethods();
})();
