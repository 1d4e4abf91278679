"use strict";
// Draws the report from the JSON object in #data. Every text of the user's goes through `text` or textContent.

const DASHES = ["", "6 3", "2 2", "7 2 2 2"];
const MOST_LINES = 10; // classes drawn at first
const FULL = 65535;
const BOX = { width: 300, height: 190, left: 44, right: 6, top: 6, curve: 140, strip: 24 };

// ---- numbers ---------------------------------------------------------------------------------------------------

function decode(base64, Type) {
  const raw = atob(base64), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Type(bytes.buffer); // little-endian, as all machines with a browser are
}

function unpack(curves) {
  const kinds = { ends: Float64Array, x: Uint16Array, y: Int16Array, y_scale: Float32Array, error: Uint16Array,
    error_scale: Float32Array, bars: Uint8Array, limits: Float32Array };
  for (const [name, Type] of Object.entries(kinds)) if (curves[name] !== null) curves[name] = decode(curves[name], Type);
  return curves;
}

// Curve of output o of the k-th feature: its fractions of the range, values and standard errors.
function curveOf(curves, nOutputs, k, o) {
  const n = curves.n_points, at = k * nOutputs + o, values = new Array(n), errors = curves.error && new Array(n);
  for (let i = 0; i < n; i++) {
    values[i] = curves.y[at * n + i] * curves.y_scale[at];
    if (errors) errors[i] = curves.error[at * n + i] * curves.error_scale[at];
  }
  return { x: curves.x.subarray(k * n, (k + 1) * n), values, errors };
}

// Value between points at a fraction of the range; where the curve jumps, that of the last point there.
function valueAt(x, values, fraction) {
  const u = Math.min(Math.max(fraction, 0), 1) * FULL;
  let i = x.length - 1;
  while (i > 0 && x[i] > u) i--;
  if (i === x.length - 1 || x[i] >= u || x[i + 1] === x[i]) return values[i];
  return values[i] + (values[i + 1] - values[i]) * (u - x[i]) / (x[i + 1] - x[i]);
}

function short(value, digits = 4) {
  if (value === null || value === undefined) return "-";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 10 ** Math.max(6, digits) || size < 1e-4 ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
}

// The ends of an axis need as many digits as tell them apart: 1.6e9 and 1.6e9 + 10.
function shortEnds(low, high) {
  let digits = 4;
  while (digits < 15 && high > low && Number(low.toPrecision(digits)) === Number(high.toPrecision(digits))) digits++;
  return [low, high].map((value) => short(value, Math.min(digits + (digits > 4 ? 1 : 0), 15)));
}

function percent(value) {
  return value === null || value === undefined ? "-" : `${(100 * value).toFixed(2)} %`;
}

function matching(names, query) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean), found = [];
  names.forEach((name, k) => {
    const own = name.toLowerCase();
    if (wanted.every((part) => own.includes(part))) found.push(k);
  });
  return found;
}

// ---- elements --------------------------------------------------------------------------------------------------

function element(name, attributes = {}, children = [], space = null) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...[children].flat(Infinity).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

const drawn = (name, attributes, children) => element(name, attributes, children, "http://www.w3.org/2000/svg");
const cell = (value, isNumber) => element("td", isNumber ? { class: "number" } : {}, value);

function section(id, heading, children) {
  document.getElementById("contents").append(element("a", { href: `#${id}` }, heading));
  const made = element("section", { id }, [element("h2", {}, heading), children]);
  document.getElementById("main").append(made);
  return made;
}

function table(head, rows, isNumber = () => true) {
  const heads = head && element("thead", {}, element("tr", {}, head.map((name, i) =>
    element("th", isNumber(i) ? { class: "number" } : {}, name))));
  const body = element("tbody", {}, rows.map((row) => element("tr", {}, row.map((value, i) => cell(value, isNumber(i))))));
  return element("table", {}, head ? [heads, body] : body);
}

function style(data, o, place) {
  return { stroke: data.colors[place % data.colors.length],
    "stroke-dasharray": DASHES[Math.floor(place / data.colors.length) % DASHES.length] || null };
}

// ---- facts, certificate, history ------------------------------------------------------------------------------

function drawFacts(data) {
  const blocks = data.facts.map(([heading, rows]) => element("div", {}, [element("h3", {}, heading),
    element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, rows.map(([name, value]) =>
      element("tr", {}, [element("th", {}, name), element("td", {}, value)])))))]));
  section("facts", "Data and options", element("div", { class: "columns" }, blocks));
}

function drawCertificate(data) {
  const c = data.certificate;
  const words = c.gap === null || c.gap === undefined
    ? `The solver ${c.solver} gives no certificate.`
    : `The objective is within ${c.bound} (relative) of the least there is: a certified duality gap, ` +
      `${c.converged ? "within" : "above"} the tolerance ${short(c.tol, 2)}.`;
  const rows = [["objective", c.objective], ["dual objective", c.dual_objective], ["relative gap", c.gap],
    ["passes", c.passes]].map(([name, value]) => [name, short(value, 8)]);
  const children = [element("p", {}, words), table(null, rows, (i) => i === 1)];
  const points = data.history.map((h) => ({ pass: h.epoch, gap: h.certified_gap ?? (h.gap === null ? null : Math.abs(h.gap)),
    isCertified: h.certified_gap !== null && h.certified_gap !== undefined })).filter((p) => p.gap > 0);
  if (points.length > 1) children.push(historyPlot(points, c.tol));
  section("certificate", "Certificate", children);
}

function historyPlot(points, tol) {
  const logs = points.map((p) => Math.log10(p.gap)).concat(tol ? [Math.log10(tol)] : []);
  const low = Math.floor(Math.min(...logs)), high = Math.max(Math.ceil(Math.max(...logs)), low + 1);
  const last = Math.max(...points.map((p) => p.pass)), first = Math.min(...points.map((p) => p.pass));
  const x = (pass) => 50 + 530 * (pass - first) / Math.max(last - first, 1), y = (log) => 10 + 150 * (high - log) / (high - low);
  const parts = [];
  for (let log = low; log <= high; log++) {
    parts.push(drawn("line", { x1: 50, x2: 580, y1: y(log), y2: y(log), stroke: "var(--line)" }),
      drawn("text", { x: 44, y: y(log) + 3, "text-anchor": "end" }, `1e${log}`));
  }
  if (tol) parts.push(drawn("line", { x1: 50, x2: 580, y1: y(Math.log10(tol)), y2: y(Math.log10(tol)), stroke: "#D55E00", "stroke-dasharray": "4 3" }));
  parts.push(drawn("polyline", { fill: "none", stroke: "var(--hit)", "stroke-width": 1.5,
    points: points.map((p) => `${x(p.pass).toFixed(1)},${y(Math.log10(p.gap)).toFixed(1)}`).join(" ") }));
  for (const p of points) {
    parts.push(drawn("circle", { cx: x(p.pass), cy: y(Math.log10(p.gap)), r: 3, stroke: "var(--hit)",
      fill: p.isCertified ? "var(--hit)" : "var(--paper)" },
    drawn("title", {}, `pass ${p.pass}: gap ${short(p.gap)}${p.isCertified ? "" : " (estimated)"}`)));
  }
  parts.push(drawn("text", { x: 50, y: 176 }, `pass ${first}`), drawn("text", { x: 580, y: 176, "text-anchor": "end" }, `pass ${last}`));
  return element("figure", { style: "margin:.5rem 0;max-width:640px" }, [
    drawn("svg", { viewBox: "0 0 600 182", role: "img", "aria-label": "gap of every pass" }, parts),
    element("figcaption", { class: "soft" }, "Relative duality gap after every pass; filled: certified, open: estimated; dashed: tolerance.")]);
}

// ---- test figures ---------------------------------------------------------------------------------------------

function drawTest(test) {
  const figures = [["rows", test.n_rows.toLocaleString("en")], ["accuracy", percent(test.accuracy)], ["error", percent(test.error)],
    ["AUC", short(test.auc, 6)], ["log loss", short(test.log_loss, 6)]];
  if (test.calibration_error !== undefined) figures.push(["calibration error", short(test.calibration_error, 4)]);
  const labels = test.classes.map(String);
  const children = [element("p", {}, `Measured on ${test.file}.`), table(null, figures, (i) => i === 1),
    element("h3", {}, "Classes"), element("div", { class: "scroll" }, table(["class", "rows", "recall", "precision"],
      labels.map((label, k) => [label, test.support[k], percent(test.recall[k]), percent(test.precision[k])]), (i) => i > 0)),
    element("h3", {}, "Confusion"), confusion(labels, test.confusion)];
  if (test.reliability && test.reliability.length) children.push(element("h3", {}, "Calibration"), reliability(test.reliability));
  if (test.range && test.range.n_clamped) {
    children.push(element("p", { class: "soft" }, `${test.range.n_clamped.toLocaleString("en")} of ` +
      `${test.range.n_values.toLocaleString("en")} values lie outside the training range; worst: ` +
      test.range.features.slice(0, 5).map((each) => each.feature).join(", ")));
  }
  section("test", "Test", children);
}

function confusion(labels, counts) {
  if (labels.length > 30) {
    const pairs = [];
    counts.forEach((row, i) => row.forEach((n, j) => { if (i !== j && n) pairs.push([labels[i], labels[j], n]); }));
    pairs.sort((a, b) => b[2] - a[2]);
    return element("div", { class: "scroll" }, table(["true class", "given", "rows"], pairs.slice(0, 50), (i) => i === 2));
  }
  const head = element("tr", {}, [element("th", {}, "true \\ given"), ...labels.map((label) => element("th", {}, label))]);
  const rows = counts.map((row, i) => {
    const total = row.reduce((sum, n) => sum + n, 0) || 1;
    return element("tr", {}, [element("th", {}, labels[i]), ...row.map((n, j) => element("td", { style:
      `background:rgba(${i === j ? "0,114,178" : "213,94,0"},${(0.7 * n / total).toFixed(3)})` }, short(n, 6)))]);
  });
  return element("div", { style: "overflow:auto" }, element("table", { class: "confusion" }, [head, ...rows]));
}

function reliability(parts) {
  const x = (share) => 40 + 240 * share, y = (share) => 250 - 240 * share, most = Math.max(...parts.map((p) => p.count));
  const shapes = [drawn("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: "var(--line)" }),
    drawn("polyline", { fill: "none", stroke: "var(--hit)", points: parts.map((p) => `${x(p.predicted)},${y(p.observed)}`).join(" ") }),
    ...parts.map((p) => drawn("circle", { cx: x(p.predicted), cy: y(p.observed), r: 2 + 5 * Math.sqrt(p.count / most), fill: "var(--hit)" },
      drawn("title", {}, `${p.count} rows: predicted ${percent(p.predicted)}, observed ${percent(p.observed)}`))),
    ...[0, 0.5, 1].flatMap((v) => [drawn("text", { x: x(v), y: 264, "text-anchor": "middle" }, v),
      drawn("text", { x: 34, y: y(v) + 3, "text-anchor": "end" }, v)])];
  return element("figure", { style: "margin:0;max-width:300px" }, [drawn("svg", { viewBox: "0 0 290 268", role: "img",
    "aria-label": "observed rate against predicted probability" }, shapes),
  element("figcaption", { class: "soft" }, "Observed rate against predicted probability; the area of a point grows with its rows.")]);
}

// ---- image maps -----------------------------------------------------------------------------------------------

function drawMaps(data) {
  const maps = data.maps, most = Math.max(...maps.signed.flat().map(Math.abs)) || 1, top = Math.max(...maps.size) || 1;
  const blend = (from, to, share) => `rgb(${from.map((v, i) => Math.round(v + (to[i] - v) * share)).join(",")})`;
  const signed = (v) => blend([247, 247, 247], v > 0 ? [178, 24, 43] : [33, 102, 172], Math.abs(v) / most);
  const picture = (values, color, caption) => element("figure", {}, [drawn("svg", { viewBox: `0 0 ${maps.width} ${maps.height}`,
    role: "img", "aria-label": caption, "shape-rendering": "crispEdges" }, values.map((v, i) => drawn("rect", {
    x: i % maps.width, y: Math.floor(i / maps.width), width: 1, height: 1, fill: color(v) }, drawn("title", {}, short(v))))),
  element("figcaption", {}, caption)]);
  section("maps", "Image", [
    element("p", { class: "soft" }, "Mean size of the curves over each cell; for a class red where greater values speak for it, blue where against."),
    element("div", { class: "maps" }, [picture(maps.size, (v) => blend([0, 32, 77], [255, 234, 70], v / top), "importance"),
      ...maps.signed.map((values, o) => picture(values, signed, `class ${data.classes[o]}`))])]);
}

// ---- curves ---------------------------------------------------------------------------------------------------

class Curves {
  constructor(data) {
    this.data = data;
    this.curves = unpack(data.curves);
    this.state = { query: "", page: 0, size: 12, sort: "size", shared: true };
    this.active = data.classes.map((_, o) => o).slice(0, MOST_LINES);
    this.panels = element("div", { class: "panels" });
    this.count = element("span", { class: "soft", "aria-live": "polite" });
    section("importance", "Importance", this.importance());
    section("curves", "Curves", [this.notes(), this.controls(), this.classes(), this.panels]);
    this.render();
  }

  importance() {
    const { names, size, kind } = this.curves, most = size[0] || 1;
    const rows = names.slice(0, 20).flatMap((name, k) => [
      element("button", { title: name, onclick: () => this.search(name) }, name),
      element("i", { style: `width:${(100 * size[k] / most).toFixed(1)}%` }), element("span", { class: "soft" }, short(size[k]))]);
    const what = kind === "importance" ? "mean of |f| over the training rows, of several classes their mean"
      : "span of the curve from its lowest to its highest value: this model keeps no density of its data";
    return [element("p", { class: "soft" }, `By ${what}. The ${Math.min(20, names.length)} greatest of ${this.curves.n_features.toLocaleString("en")} features.`),
      element("div", { class: "importance" }, rows)];
  }

  notes() {
    const c = this.curves, left = c.n_features - c.n_shown;
    const words = ["What each feature adds to the score, centred on the training data. Below: where the data lie; a dark line is a value that many rows share."];
    if (c.clamped) words.push("Shaded: beyond the training range, where values count as its nearer end" +
      (c.linear.includes(1) ? ", unless no dotted line is drawn: such curves go on by their slope." : ".") + " Ticks: knots.");
    if (c.error) words.push("Bands: one standard error, from the folds of the search.");
    if (c.bars === null) words.push("The density of the training data is unknown.");
    if (left > 0) words.push(`The ${left.toLocaleString("en")} features of least ${c.kind} are left out to keep the file small.`);
    return element("p", { class: "soft" }, words.join(" "));
  }

  controls() {
    this.box = element("input", { type: "search", placeholder: "search features", "aria-label": "search features",
      oninput: () => { this.state.query = this.box.value; this.state.page = 0; this.render(); } });
    const choice = (label, options, key) => element("label", {}, [label, " ", element("select", {
      onchange: (event) => { this.state[key] = key === "size" ? Number(event.target.value) : event.target.value; this.state.page = 0; this.render(); } },
    options.map(([value, name]) => element("option", { value, selected: this.state[key] === value ? "" : null }, name)))]);
    this.back = element("button", { onclick: () => this.turn(-1) }, "previous");
    this.next = element("button", { onclick: () => this.turn(1) }, "next");
    return element("div", { class: "controls" }, [this.box,
      choice("sort by", [["size", this.curves.kind], ["index", "column"], ["name", "name"]], "sort"),
      choice("a page", [[12, "12"], [24, "24"], [48, "48"]], "size"),
      element("label", {}, [element("input", { type: "checkbox", checked: "", onchange: (event) => {
        this.state.shared = event.target.checked; this.render(); } }), " one scale a page"]),
      this.back, this.next, this.count]);
  }

  classes() {
    if (this.data.classes.length === 1) return element("p", { class: "soft" }, `Score of class ${this.data.classes[0]}.`);
    return element("div", { class: "classes" }, this.data.classes.map((label, o) => {
      const swatch = drawn("svg", { viewBox: "0 0 22 8", style: "width:22px" }, drawn("line", { x1: 0, x2: 22, y1: 4, y2: 4,
        "stroke-width": 2, ...style(this.data, o, o) }));
      return element("label", {}, [element("input", { type: "checkbox", checked: this.active.includes(o) ? "" : null,
        onchange: (event) => {
          this.active = this.active.filter((each) => each !== o).concat(event.target.checked ? [o] : []).sort((a, b) => a - b);
          this.render();
        } }), swatch, label]);
    }));
  }

  search(name) {
    this.box.value = this.state.query = name;
    this.state.page = 0;
    this.render();
    document.getElementById("curves").scrollIntoView();
  }

  turn(step) {
    this.state.page += step;
    this.render();
  }

  order() {
    const found = matching(this.curves.names, this.state.query), { index, names } = this.curves;
    if (this.state.sort === "index") found.sort((a, b) => index[a] - index[b]);
    if (this.state.sort === "name") found.sort((a, b) => names[a].localeCompare(names[b], undefined, { numeric: true }));
    return found;
  }

  render() {
    const found = this.order(), pages = Math.max(1, Math.ceil(found.length / this.state.size));
    this.state.page = Math.min(Math.max(this.state.page, 0), pages - 1);
    const shown = found.slice(this.state.page * this.state.size, (this.state.page + 1) * this.state.size);
    this.count.textContent = `${found.length.toLocaleString("en")} features, page ${this.state.page + 1} of ${pages}`;
    this.back.disabled = this.state.page === 0;
    this.next.disabled = this.state.page === pages - 1;
    const lines = shown.map((k) => this.active.map((o) => ({ o, ...curveOf(this.curves, this.data.classes.length, k, o) })));
    const span = (own) => own.flat().reduce((ends, line) => [Math.min(ends[0], ...line.values), Math.max(ends[1], ...line.values)], [0, 0]);
    const whole = this.curves.limits ? shown.reduce(([low, high], k) => [Math.min(low, this.curves.limits[2 * k]),
      Math.max(high, this.curves.limits[2 * k + 1])], [0, 0]) : span(lines);
    this.panels.replaceChildren(...shown.map((k, i) => this.panel(k, lines[i], this.state.shared ? whole : span([lines[i]]))));
  }

  panel(k, lines, [low, high]) {
    const c = this.curves, margin = 0.06 * (high - low) || 1;
    [low, high] = [low - margin, high + margin];
    const side = c.clamped ? 10 : 0, inner = BOX.width - BOX.left - BOX.right - 2 * side;
    const x = (share) => BOX.left + side + inner * share, y = (value) => BOX.top + BOX.curve * (high - value) / (high - low);
    const bottom = BOX.top + BOX.curve, ends = [c.ends[2 * k], c.ends[2 * k + 1]], parts = [];
    if (side) for (const at of [BOX.left, BOX.width - BOX.right - side]) {
      parts.push(drawn("rect", { x: at, y: BOX.top, width: side, height: BOX.curve, fill: "var(--zone)" }));
    }
    parts.push(drawn("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(0), y2: y(0), stroke: "var(--line)" }));
    const curves = []; // in a picture of its own, whose frame cuts what runs away where there are next to no rows
    for (const line of lines) this.line(line, x, y, c.linear[k] ? 0 : side, curves);
    for (const [at, , ...middle] of c.spikes[k]) for (const { o } of lines) {
      curves.push(drawn("circle", { cx: x(at), cy: y(middle[o]), r: 2.5, fill: style(this.data, o, o).stroke }));
    }
    parts.push(drawn("svg", { x: 0, y: BOX.top, width: BOX.width, height: BOX.curve, viewBox: `0 ${BOX.top} ${BOX.width} ${BOX.curve}` }, curves));
    for (const at of c.knots[k]) parts.push(drawn("line", { x1: x(at), x2: x(at), y1: bottom - 3, y2: bottom + 3, stroke: "var(--soft)" }));
    parts.push(drawn("rect", { x: BOX.left, y: BOX.top, width: BOX.width - BOX.left - BOX.right, height: BOX.curve, fill: "none", stroke: "var(--line)" }));
    if (c.bars) this.strip(k, x, inner, bottom + 6, parts);
    const [left, right] = shortEnds(...ends), base = BOX.height - 4;
    parts.push(drawn("text", { x: x(0), y: base }, left), drawn("text", { x: x(1), y: base, "text-anchor": "end" }, right),
      drawn("text", { x: BOX.left - 4, y: BOX.top + 8, "text-anchor": "end" }, short(high, 2)),
      drawn("text", { x: BOX.left - 4, y: bottom, "text-anchor": "end" }, short(low, 2)));
    const ruler = drawn("line", { y1: BOX.top, y2: bottom + 6 + BOX.strip, stroke: "var(--hit)", visibility: "hidden" });
    const picture = drawn("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, tabindex: 0, role: "img", "aria-label": `curve of ${c.names[k]}` }, [...parts, ruler]);
    this.follow(picture, ruler, k, lines, x, (px) => (px - x(0)) / inner, ends);
    return element("div", { class: "panel" }, [element("h3", {}, [element("span", { title: `${c.names[k]} (column ${c.index[k]})` }, c.names[k]),
      element("span", {}, short(c.size[k]))]), picture]);
  }

  line({ o, x: at, values, errors }, x, y, side, parts) {
    const own = style(this.data, o, o), n = values.length;
    const point = (i, shift = 0) => `${x(at[i] / FULL).toFixed(1)},${y(values[i] + shift).toFixed(1)}`;
    const indices = values.map((_, i) => i);
    if (errors) {
      const edge = indices.map((i) => point(i, errors[i])).concat(indices.slice().reverse().map((i) => point(i, -errors[i])));
      parts.push(drawn("polygon", { points: edge.join(" "), fill: own.stroke, opacity: 0.18 }));
    }
    parts.push(drawn("polyline", { points: indices.map((i) => point(i)).join(" "), fill: "none", "stroke-width": 1.6, ...own }));
    if (side) for (const [end, i] of [[x(0) - side, 0], [x(1) + side, n - 1]]) {
      parts.push(drawn("line", { x1: end, x2: x(i ? 1 : 0), y1: y(values[i]), y2: y(values[i]), stroke: own.stroke, "stroke-dasharray": "1 2" }));
    }
  }

  strip(k, x, inner, top, parts) {
    const n = this.curves.n_bars, width = inner / n;
    for (let i = 0; i < n; i++) {
      const size = BOX.strip * this.curves.bars[k * n + i] / 255;
      if (size) parts.push(drawn("rect", { x: (x(0) + i * width).toFixed(1), y: (top + BOX.strip - size).toFixed(1),
        width: (width * 0.95).toFixed(2), height: size.toFixed(1), fill: "var(--bar)" }));
    }
    for (const [at, share] of this.curves.spikes[k]) {
      parts.push(drawn("rect", { x: x(at) - 1, y: top + BOX.strip * (1 - share), width: 2, height: BOX.strip * share, fill: "var(--spike)" }));
    }
  }

  // Values under the pointer; with the arrow keys a fiftieth of the range further.
  follow(picture, ruler, k, lines, x, fractionOf, [low, high]) {
    const tip = document.getElementById("tip");
    let here = 0.5;
    const show = (fraction, left, top) => {
      here = Math.min(Math.max(fraction, 0), 1);
      ruler.setAttribute("x1", x(here));
      ruler.setAttribute("x2", x(here));
      ruler.setAttribute("visibility", "visible");
      const value = low * (1 - here) + high * here, digits = high > low ? Math.max(4, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))) + 4) : 6;
      const rows = lines.map(({ o, x: at, values, errors }) => element("tr", {}, [
        element("td", { style: `color:${this.data.colors[o % this.data.colors.length]}` }, this.data.classes[o]),
        cell(short(valueAt(at, values, here)), true), cell(errors ? `± ${short(valueAt(at, errors, here), 2)}` : "", true)]));
      tip.replaceChildren(element("b", {}, `${this.curves.names[k]} = ${short(value, Math.min(digits, 15))}`), element("table", {}, element("tbody", {}, rows)));
      tip.hidden = false;
      tip.style.left = `${Math.min(left + 14, window.innerWidth - 220)}px`;
      tip.style.top = `${Math.min(top + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
    };
    const hide = () => { tip.hidden = true; ruler.setAttribute("visibility", "hidden"); };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      show(fractionOf((event.clientX - box.left) * BOX.width / box.width), event.clientX, event.clientY);
    });
    picture.addEventListener("pointerleave", hide);
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (!step) return;
      event.preventDefault();
      const box = picture.getBoundingClientRect();
      show(here + step, box.left + box.width / 2, box.bottom - 40);
    });
  }
}

// ---- the page -------------------------------------------------------------------------------------------------

function draw() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.title = `${data.title} - linadd report`;
  document.getElementById("title").textContent = data.title;
  drawFacts(data);
  drawCertificate(data);
  if (data.test) drawTest(data.test);
  if (data.maps) drawMaps(data);
  return new Curves(data);
}

if (typeof document !== "undefined") draw();
else module.exports = { curveOf, decode, matching, short, shortEnds, unpack, valueAt };
