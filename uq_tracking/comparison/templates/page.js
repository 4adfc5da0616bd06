"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
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
      const own = line.classList.contains(`m${method}`);
      line.classList.toggle("strong", method !== null && own);
      line.classList.toggle("faint", method !== null && !own);
    }
  }

  // ---------- pictures: drawn by Observable Plot, colored by the style sheet ----------

  const WIDTH = 420;
  const MOST_NAMED = 8;
  const EDGE = { marginLeft: 58, marginRight: 12, marginTop: 10, marginBottom: 42 };
  const AXIS = { labelAnchor: "center", labelArrow: "none", ticks: 5, tickSize: 0, tickPadding: 6, grid: true, line: true };
  const REFERENCE = { className: "reference", strokeDasharray: "5 4" };
  const shorten = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text);

  // Draw a picture in its card, in place of the last one; tips explain what is pointed at.
  function put(card, label, tips, options) {
    card.querySelector("svg")?.remove();
    const svg = Plot.plot({ width: WIDTH, ...EDGE, ...options, x: { ...AXIS, ...options.x }, y: { ...AXIS, ...options.y } });
    svg.querySelector("style").remove(); // the page has its own, and its policy allows no other
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    svg.addEventListener("pointermove", (event) => {
      if (svg.value == null) hideTip();
      else showTip(event.clientX, event.clientY, tips(svg.value));
    });
    svg.addEventListener("pointerleave", hideTip);
    card.append(svg);
  }

  // ---------- curves ----------

  const visible = (line) => !hiddenMethods.has(line.method) && !hiddenRuns.has(line.run);

  function makePlot(curve) {
    const card = element("div", { class: "plot", "data-curve": curve.name });
    card.append(element("h3", { title: curve.name }, curve.title));
    document.getElementById("curve-grid").append(card);
    offerFiles(card, curve.name, curve.title, () => curveRows(curve));
    return { curve, card };
  }

  function drawPlot({ curve, card }) {
    const lines = curve.lines.filter(visible);
    const positions = Array.from(new Set(lines.flatMap((line) => curve.x[line.x])));
    const chances = Array.from(new Set(lines.map((line) => line.chance)), (k) => curve.chances[k]).filter(Boolean);
    const many = new Map();
    for (const line of lines) many.set(line.method, (many.get(line.method) || 0) + 1);
    const marks = [Plot.areaY(chances.flatMap((band, z) => points(curve, band).map((point) => ({ ...point, z }))), { ...BAND, z: "z", className: "chance" })];
    for (const line of lines) {
      if (line.low) marks.push(Plot.areaY(points(curve, line), { ...BAND, className: `band ${color(line.method)}` }));
    }
    for (const line of lines) {
      const own = unbroken(points(curve, line), curve.y_limits), place = { x: "x", y: "y" };
      const classes = `run-line m${line.method} ${look(line.method)} ${many.get(line.method) > 1 ? "many" : ""}`;
      marks.push(Plot.line(curve.labels.length ? [] : own, { ...place, className: classes }));
      if (curve.labels.length || own.length <= 12) marks.push(Plot.dot(own, { ...place, r: 2.8, className: `dot ${color(line.method)}` }));
    }
    // The reference lies above the lines: a perfect model would hide it otherwise.
    marks.push(Plot.ruleY(curve.levels, REFERENCE));
    const [x, y] = domains(curve, lines, positions);
    if (curve.diagonal) {
      const [low, high] = [Math.min(x.domain[0], y.domain[0]), Math.max(x.domain[1], y.domain[1])];
      marks.push(Plot.link([low], { x1: low, y1: low, x2: high, y2: high, ...REFERENCE }));
    }
    marks.push(Plot.ruleX(positions, Plot.pointerX({ className: "guide", maxRadius: Infinity })));
    put(card, `${curve.title}, ${curve.name}`, (at) => tipRows(curve, lines, at), { height: 280, clip: true, marks, x: { label: curve.x_label, ...x, ...named(curve) }, y: { label: curve.y_label, ...y } });
  }

  const BAND = { x: "x", y1: "low", y2: "high", fill: "currentColor" };

  const points = (curve, line) => curve.x[line.x].map((x, k) => ({ x, y: line.y?.[k], low: line.low?.[k], high: line.high?.[k] }));

  // A jump across the whole picture is a pole of the definition, not a line.
  function unbroken(own, limits) {
    if (!limits) return own;
    const side = (point) => (point.y > limits[1]) - (point.y < limits[0]);
    return own.flatMap((point, k) => (k && side(point) * side(own[k - 1]) < 0 ? [{ x: point.x, y: NaN }, point] : [point]));
  }

  // Ranges of the axes: equal beside a diagonal, where neither leaves the other a corner of the picture.
  function domains(curve, lines, positions) {
    const x = curve.labels.length ? [-0.5, curve.labels.length - 0.5] : extent(positions);
    const y = extent(lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]).concat(curve.levels));
    if (curve.diagonal && alike(x, y)) {
      const both = rounded(extent([...x, ...y]));
      return [{ domain: both }, { domain: both }];
    }
    return [{ domain: x }, curve.y_limits ? { domain: curve.y_limits } : { domain: y, insetTop: 8, insetBottom: 8 }];
  }

  function extent(values) {
    const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
    if (!(low <= high)) return [0, 1];
    const half = low === high ? 0.1 * Math.abs(low) || 0.5 : 0;
    return [low - half, high + half];
  }

  const alike = (x, y) => y[1] - y[0] < 3 * (x[1] - x[0]) && x[1] - x[0] < 3 * (y[1] - y[0]) + 0.5;
  const rounded = ([low, high]) => (low >= 0 && low < 0.1 && high <= 1 && high > 0.9 ? [0, 1] : [low, high]);

  function named({ labels }) {
    if (!labels.length) return {};
    const letters = Math.max(4, Math.floor(60 / Math.min(labels.length, MOST_NAMED)));
    const every = Math.ceil(labels.length / MOST_NAMED);
    return { ticks: Array.from(labels.keys()).filter((k) => k % every === 0), tickFormat: (k) => shorten(labels[k], letters) };
  }

  function curveRows(curve) {
    const rows = [["method", "run", curve.x_label, curve.y_label, "low", "high"]];
    for (const line of curve.lines.filter(visible)) {
      for (const { x, y, low, high } of points(curve, line)) rows.push([data.methods[line.method], line.run, curve.labels[x] ?? x, y, low ?? "", high ?? ""]);
    }
    return rows;
  }

  const nearest = (own, at) => own.reduce((best, point) => (Math.abs(point.x - at) < Math.abs(best.x - at) ? point : best));

  function tipRows(curve, lines, at) {
    const content = [element("b", {}, `${curve.x_label}: ${curve.labels[at] ?? shown(at)}`)];
    const methods = new Map(lines.map((line) => [line.method, []]));
    for (const line of lines) methods.get(line.method).push(nearest(points(curve, line), at));
    const summaries = Array.from(methods, ([method, own]) => summary(curve, method, own, at));
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
  function summary(curve, method, own, at) {
    const heights = own.map((point) => point.y);
    const height = heights.reduce((sum, value) => sum + value, 0) / heights.length;
    let text = shown(height);
    if (own.length > 1) text += ` (${shown(Math.min(...heights))} to ${shown(Math.max(...heights))})`;
    else if (own[0].x !== at) text = `${curve.labels[own[0].x] ?? shown(own[0].x)} \u2192 ${text}`;
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
    const width = Math.max(300, Math.min(720, card.clientWidth - 26));
    const interval = (axis) => points.filter((point) => point[`${axis}_interval`]);
    const ends = (axis) => ({ [`${axis}1`]: (point) => point[`${axis}_interval`][0], [`${axis}2`]: (point) => point[`${axis}_interval`][1], ...COLORED, strokeWidth: 2.2 });
    const marks = [
      Plot.ruleY(levels, { y: "value", ...REFERENCE }),
      Plot.text(levels, { y: "value", text: "name", frameAnchor: "left", dx: 4, dy: -7 }),
      Plot.ruleY(interval("x"), { y: "y", ...ends("x") }),
      Plot.ruleX(interval("y"), { x: "x", ...ends("y") }),
      Plot.dot(points, { x: "x", y: "y", r: 5, fill: COLORED.stroke, className: "dot" }),
      Plot.dot(points, Plot.pointer({ x: "x", y: "y", r: 8, ...COLORED })),
      Plot.text(points, Plot.initializer({ x: "x", y: "y", text: (point) => data.labels[point.method], fill: COLORED.stroke, className: "name" }, besidePoints(levels, width))),
    ];
    const tips = (point) => [element("b", {}, data.methods[point.method]), element("div", {}, `${xKey} ${shown(point.x)}`), element("div", {}, `${yKey} ${shown(point.y)}`)];
    put(card, `${xKey} against ${yKey}`, tips, { width, height: 340, inset: 24, marks, x: { label: axisLabel(xKey) }, y: { label: axisLabel(yKey) } });
  }

  const COLORED = { stroke: (item) => `var(--c${data.looks[item.method] % COLORS})` };
  const axisLabel = (key) => `${key}${data.metrics[key].unit ? ` [${data.metrics[key].unit}]` : ""} (better: ${data.metrics[key].better})`;

  function scatterRows() {
    const { x, y, points } = data.scatter;
    return [["method", x, y], ...points.filter((point) => !hiddenMethods.has(point.method)).map((point) => [data.methods[point.method], point.x, point.y])];
  }

  // Names above or below their points, as near as there is room; in a crowd pointing tells the rest.
  function besidePoints(levels, width) {
    return (points, [index], channels, { x, y }) => {
      const taken = points.map((point) => ({ at: y(point.y), middle: x(point.x), half: 4 }));
      for (const level of levels) taken.push({ at: y(level.value) - 7, middle: EDGE.marginLeft + 4 + 3.5 * level.name.length, half: 3.5 * level.name.length });
      const placed = { x: [], y: [] };
      for (const k of index) {
        const half = 3.5 * data.labels[points[k].method].length;
        const middle = Math.max(EDGE.marginLeft + half, Math.min(width - EDGE.marginRight - half, x(points[k].x)));
        const free = (at) => !taken.some((other) => Math.abs(other.at - at) < 12 && Math.abs(other.middle - middle) < half + other.half + 3);
        placed.x[k] = middle;
        placed.y[k] = [-14, 14, -27, 27, -40].map((step) => y(points[k].y) + step).find((at) => at > EDGE.marginTop + 4 && free(at));
        if (placed.y[k] !== undefined) taken.push({ at: placed.y[k], middle, half });
      }
      const shownOnes = index.filter((k) => placed.y[k] !== undefined);
      return { data: points, facets: [shownOnes], channels: { x: { value: placed.x }, y: { value: placed.y } } };
    };
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

  function draw(parent, name, attributes, text = null) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent?.append(made);
    return made;
  }

  // The picture with its title and a legend, styled by attributes so that any program shows it.
  function standalone(card, title) {
    const svg = card.querySelector("svg"), copy = svg.cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const originals = [svg, ...all("*", svg)];
    [copy, ...all("*", copy)].forEach((node, k) => {
      const style = getComputedStyle(originals[k]);
      for (const name of COPIED) node.setAttribute(name, style.getPropertyValue(name));
      node.removeAttribute("class");
    });
    const ink = getComputedStyle(document.body).color, font = getComputedStyle(document.body).fontFamily;
    const legend = card.dataset.curve ? data.labels.map((name, method) => [name, method]).filter(([, method]) => !hiddenMethods.has(method)) : [];
    const total = height + 30 + 18 * legend.length;
    const whole = draw(null, "svg", { viewBox: `0 -26 ${width} ${total}`, width, height: total });
    draw(whole, "rect", { x: 0, y: -26, width, height: total, fill: getComputedStyle(document.body).backgroundColor });
    draw(whole, "text", { x: 8, y: -8, fill: ink, "font-size": 15, "font-weight": 600, "font-family": font }, title);
    whole.append(copy);
    legend.forEach(([name, method], k) => {
      const line = all(`.run-line`, card).find((other) => other.classList.contains(`m${method}`));
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

  function forest(key, items) {
    const metric = data.metrics[key];
    const card = element("div", { class: "plot", "data-difference": key });
    const title = element("h3", {}, `${key} ${metric.mark}`);
    if (metric.unit) title.append(element("span", { class: "sub" }, `[${metric.unit}]`));
    card.append(title);
    offerFiles(card, `difference_${key}`, `${key}: difference to ${data.baseline}`, () => [["method", "difference", "low", "high", "relative", "effect", "verdict"], ...items.map((item) => [data.methods[item.method], item.value, ...(item.interval || ["", ""]), item.relative ?? "", item.effect ?? "", item.verdict])]);
    const marginLeft = 24 + 6.5 * Math.max(...items.map((item) => data.labels[item.method].length));
    const place = { x: "value", y: "method", fill: "currentColor", r: 4.2 };
    const marks = [Plot.ruleX([0], { className: "axis" })];
    // The shape repeats what the color says: a triangle towards better or worse, a circle for neither.
    for (const [verdict, shape] of Object.entries(SHAPES)) {
      const own = items.filter((item) => (item.verdict in SHAPES ? item.verdict : "unclear") === verdict);
      const found = own.filter((item) => item.interval);
      marks.push(Plot.ruleY(found, { x1: (item) => item.interval[0], x2: (item) => item.interval[1], y: "method", strokeWidth: 2.2, className: verdict }));
      marks.push(Plot.dot(own, { ...place, ...shape, className: `dot ${verdict}` }));
    }
    marks.push(Plot.ruleY(items, Plot.pointerY({ y: "method", className: "guide", strokeOpacity: 0.4, maxRadius: Infinity })));
    const label = `minus ${data.baseline_label}${metric.unit ? ` [${metric.unit}]` : ""}`;
    const y = { type: "point", domain: items.map((item) => item.method), tickFormat: (method) => data.labels[method], label: null, line: false, grid: false };
    put(card, `differences in ${key}`, differenceTip, { height: 50 + 24 * items.length, marginTop: 4, marginLeft, marks, x: { label, inset: 8, ticks: 4, line: false }, y });
    return card;
  }

  const SHAPES = { better: { symbol: "triangle" }, worse: { symbol: "triangle", rotate: 180 }, unclear: {} };

  function differenceTip(item) {
    const range = item.interval ? `${shown(item.interval[0], 4)} to ${shown(item.interval[1], 4)} (${item.how})` : "no interval";
    const verdict = item.verdict === "unknown" ? "" : `, ${item.verdict}`;
    const sizes = [];
    if (item.relative != null) sizes.push(`${item.relative > 0 ? "+" : ""}${shown(100 * item.relative, 2)} %`);
    if (item.effect != null) sizes.push(`d ${shown(item.effect, 2)}`);
    const size = sizes.length ? ` (${sizes.join(", ")})` : "";
    return [element("b", {}, `${data.methods[item.method]} \u2212 ${item.reference}`), element("div", {}, `${shown(item.value, 4)}${size}${verdict}`), element("div", { class: "quiet" }, range)];
  }

  // ---------- start ----------

  const first = all("thead th[data-key]", table).find((header) => header.dataset.key === data.sorted_by);
  if (first) first.setAttribute("aria-sort", "ascending");
  // More lines than this are hard to follow: the page opens with the best ones, the others are a click away.
  const MOST = 24, OPENED = 12;
  if (data.methods.length > MOST) data.methods.forEach((_, method) => setMethod(method, method < OPENED));
  applyMethods();
})();
