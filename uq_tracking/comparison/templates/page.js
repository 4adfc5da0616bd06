"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";
  const COLORS = 8;
  const hiddenMethods = new Set();
  const hiddenRuns = new Set();
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

  function shown(value, digits = 3) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : Number(value.toPrecision(digits)).toString();
    return text.replace("-", "\u2212");
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

  const look = (method) => `c${method % COLORS} d${Math.min(Math.floor(method / COLORS), 3)}`;

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
      const runs = all(`tr.run[data-parent="${row.dataset.method}"]`, body);
      body.append(row, ...runs);
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
    for (const row of all("tr.method", body)) row.classList.toggle("off", hiddenMethods.has(Number(row.dataset.method)));
    for (const row of all("tr.run", body)) {
      const off = hiddenMethods.has(Number(row.dataset.parent)) || hiddenRuns.has(row.dataset.run);
      row.classList.toggle("off", off);
    }
    for (const card of all(".card[data-method]")) card.hidden = hiddenMethods.has(Number(card.dataset.method));
    document.getElementById("toggle-all").textContent = hiddenMethods.size ? `show all ${data.methods.length}` : "hide all";
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
  const single = document.getElementById("single-runs");
  if (single) {
    single.addEventListener("change", () => {
      for (const row of all("tr.run", body)) row.hidden = !single.checked;
    });
  }

  function emphasise(method) {
    for (const line of all(".run-line")) {
      const own = Number(line.dataset.method) === method;
      line.classList.toggle("strong", method !== null && own);
      line.classList.toggle("faint", method !== null && !own);
    }
  }

  // ---------- curves ----------

  const WIDTH = 420, HEIGHT = 280;
  const EDGE = { left: 52, right: 12, top: 10, bottom: 42 };

  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (!(low <= high)) return [0, 1];
    if (low === high) return [low - 0.5, high + 0.5];
    return [low, high];
  }

  function frame(svg, x, y, xLabel, yLabel) {
    const [bottom, left] = [HEIGHT - EDGE.bottom, EDGE.left];
    const right = WIDTH - EDGE.right;
    const xTicks = ticks(...x.domain), yTicks = ticks(...y.domain);
    xTicks.forEach((value) => {
      draw(svg, "line", { class: "tick", x1: x(value), x2: x(value), y1: EDGE.top, y2: bottom });
      draw(svg, "text", { x: x(value), y: bottom + 15, "text-anchor": "middle" }, tickText(value, xTicks[1] - xTicks[0] || 1));
    });
    yTicks.forEach((value) => {
      draw(svg, "line", { class: "tick", x1: left, x2: right, y1: y(value), y2: y(value) });
      draw(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, yTicks[1] - yTicks[0] || 1));
    });
    draw(svg, "line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    draw(svg, "line", { class: "axis", x1: left, x2: left, y1: EDGE.top, y2: bottom });
    draw(svg, "text", { class: "label", x: (left + right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xLabel);
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
    const title = element("h3", {}, curve.title);
    title.append(element("span", { class: "sub" }, curve.name));
    card.append(title);
    document.getElementById("curve-grid").append(card);
    return { curve, card, place };
  }

  function drawPlot({ curve, card, place }) {
    card.querySelector("svg")?.remove();
    const svg = draw(card, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${curve.title}, ${curve.name}` });
    const xDomain = extent(curve.lines.flatMap((line) => curve.x[line.x]));
    const heights = curve.lines.filter(visible).flatMap((line) => line.y);
    let yDomain = extent([...(heights.length ? heights : curve.lines.flatMap((line) => line.y)), ...curve.levels]);
    const pad = 0.04 * (yDomain[1] - yDomain[0]);
    yDomain = curve.yLimits || [yDomain[0] - pad, yDomain[1] + pad];
    const x = scale(xDomain, EDGE.left, WIDTH - EDGE.right);
    const y = scale(yDomain, HEIGHT - EDGE.bottom, EDGE.top);
    frame(svg, x, y, curve.xLabel, curve.yLabel);
    const clip = draw(draw(svg, "defs"), "clipPath", { id: `clip-${place}` });
    draw(clip, "rect", { x: EDGE.left, y: EDGE.top, width: WIDTH - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom });
    const inside = draw(svg, "g", { "clip-path": `url(#clip-${place})` });
    if (curve.diagonal) draw(inside, "path", { class: "reference", d: path(xDomain, xDomain, x, scale(yDomain, HEIGHT - EDGE.bottom, EDGE.top)) });
    for (const level of curve.levels) draw(inside, "line", { class: "reference", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(level), y2: y(level) });
    const lines = curve.lines.filter(visible);
    const many = new Map();
    for (const line of lines) many.set(line.method, (many.get(line.method) || 0) + 1);
    for (const line of lines) {
      const xs = curve.x[line.x];
      const classes = `run-line ${look(line.method)} ${many.get(line.method) > 1 ? "many" : ""}`;
      const made = draw(inside, "path", { class: classes, d: path(xs, line.y, x, y) });
      made.dataset.method = line.method;
      made.dataset.run = line.run;
      if (xs.length <= 12) xs.forEach((value, k) => draw(inside, "circle", { class: `dot c${line.method % COLORS}`, cx: x(value), cy: y(line.y[k]), r: 2.8 }));
    }
    hover(svg, curve, lines, x, y);
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
    const content = [element("b", {}, `${curve.xLabel}: ${shown(at)}`)];
    const methods = new Map();
    for (const row of rows) {
      if (!methods.has(row.line.method)) methods.set(row.line.method, []);
      methods.get(row.line.method).push(row);
    }
    const summaries = Array.from(methods, ([method, own]) => summary(method, own, common));
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
  function summary(method, rows, common) {
    const heights = rows.map((row) => row.y);
    const height = heights.reduce((sum, value) => sum + value, 0) / heights.length;
    let text = shown(height);
    if (rows.length > 1) text += ` (${shown(Math.min(...heights))} to ${shown(Math.max(...heights))})`;
    else if (!common) text = `${shown(rows[0].at)} \u2192 ${text}`;
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

  const CLASSES = { better: "better", worse: "worse" };

  function forest(key, items) {
    const metric = data.metrics[key];
    const card = element("div", { class: "plot", "data-difference": key });
    const title = element("h3", {}, `${key} ${metric.mark}`);
    title.append(element("span", { class: "sub" }, metric.unit));
    card.append(title);
    const rowHeight = 24, height = 30 + rowHeight * items.length, left = 150;
    const svg = draw(card, "svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `differences in ${key}` });
    const ends = items.flatMap((item) => [item.value, ...(item.interval || [])]);
    const [low, high] = extent([0, ...ends]);
    const pad = 0.06 * (high - low);
    const x = scale([low - pad, high + pad], left, WIDTH - 14);
    const marks = ticks(...x.domain, 4);
    for (const value of marks) {
      draw(svg, "line", { class: "tick", x1: x(value), x2: x(value), y1: 4, y2: height - 22 });
      draw(svg, "text", { x: x(value), y: height - 7, "text-anchor": "middle" }, tickText(value, marks[1] - marks[0] || 1));
    }
    draw(svg, "line", { class: "axis", x1: x(0), x2: x(0), y1: 4, y2: height - 22 });
    items.forEach((item, k) => forestRow(svg, item, x, 16 + rowHeight * k, left));
    return card;
  }

  function forestRow(svg, item, x, y, left) {
    const name = data.methods[item.method];
    const short = name.length > 22 ? `${name.slice(0, 21)}\u2026` : name;
    draw(svg, "text", { class: "row", x: left - 10, y: y + 4, "text-anchor": "end" }, short);
    const group = draw(svg, "g", { class: CLASSES[item.verdict] || "unclear" });
    if (item.interval) draw(group, "line", { class: "interval-line", x1: x(item.interval[0]), x2: x(item.interval[1]), y1: y, y2: y });
    const at = x(item.value);
    // The shape repeats what the colour says: a triangle towards better or worse, a circle for neither.
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
    return [element("b", {}, `${name} \u2212 ${item.reference}`), element("div", {}, `${shown(item.value, 4)}${verdict}`), element("div", { class: "quiet" }, range)];
  }

  // ---------- start ----------

  const first = all("thead th[data-key]", table).find((header) => data.metrics[header.dataset.key].better !== "does not judge" && !header.hidden);
  if (first) first.setAttribute("aria-sort", "ascending");
  // More lines than this are hard to follow: the page opens with the best ones, the others are a click away.
  const MOST = 24, OPENED = 12;
  if (data.methods.length > MOST) data.methods.forEach((_, method) => setMethod(method, method < OPENED));
  applyMethods();
})();
