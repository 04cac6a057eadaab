"use strict";
// Draws the paths of the page's data. A path has one stop per dial; a stop holds the figures of
// the path's table, and its plan by rows: [column, share, column, share, ...], shares of the
// source point's mass in ten-thousandths.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SIDES = ["source", "target"];
const ALONE = "#8a929b"; // a point that belongs to no group
const FIGURES = [
  ["value", "Value", "the objective at this plan"],
  ["linear", "Linear cost", "what the plan costs in plain terms"],
  ["concentration", "Concentration", "of a source group goes to one target group"],
  ["partners", "Partners", "effective targets per source point, on average"],
  ["gap", "Gap", "the value is at most this far above the optimum"],
];
const state = { structure: 0, stop: 0, side: null, index: null };
let plan = null; // of the stop shown: {rows, cols}, lists of [partner, share of the point's mass]

const path = () => data.paths[state.structure];
const stop = () => path().stops[state.stop];
const tallest = () => Math.max(300, Math.min(560, 0.6 * window.innerHeight)); // figures in sight

function color(group) {
  if (group < 0) return ALONE;
  const chosen = data.palette[group % data.palette.length];
  const dark = document.documentElement.dataset.theme === "dark";
  return dark ? `color-mix(in srgb, ${chosen}, white 30%)` : chosen;
}

function number(x, digits = 4) {
  if (x === null) return "–";
  const size = Math.abs(x);
  if (size === 0 || (size >= 1e-3 && size < 10 ** digits)) return x.toPrecision(digits);
  return size >= 1 && size < 1e6 ? x.toFixed(0) : x.toExponential(digits - 1).replace("e+", "e");
}

const short = (x) => (x === 0 ? "0" : number(x, 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""));

const percent = (x) => (x === null ? "–" : `${(100 * x).toFixed(1)} %`);

function figure(name, x) {
  if (name === "concentration") return percent(x);
  if (name === "gap") return x === null ? "–" : x.toExponential(1);
  return number(x);
}

function element(tag, parent, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// --- the plan of a stop ------------------------------------------------------------------------

function unpack(rows) {
  const cols = data.target.points.map(() => []);
  const lists = rows.map((flat, i) => {
    const list = [];
    for (let k = 0; k < flat.length; k += 2) {
      const share = flat[k + 1] / 1e4;
      list.push([flat[k], share]);
      cols[flat[k]].push([i, share * data.source.weights[i]]);
    }
    return list;
  });
  for (const list of cols) {
    const total = list.reduce((sum, [, mass]) => sum + mass, 0);
    for (const entry of list) entry[1] /= total;
  }
  return { rows: lists, cols };
}

function pairs() {
  const { side, index } = state;
  if (side === "target") return plan.cols[index].map(([i, share]) => [i, index, share]);
  const shown = side === "source" ? [index] : plan.rows.keys();
  return [...shown].flatMap((i) => plan.rows[i].map(([j, share]) => [i, j, share]));
}

// --- drawing -----------------------------------------------------------------------------------

function prepare(canvas, height) {
  const width = canvas.clientWidth, scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return { pen, width, height };
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function place(canvas) {
  const all = [...data.source.points, ...data.target.points];
  const [xs, ys] = [0, 1].map((k) => all.map((point) => point[k]));
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const margin = 14, width = canvas.clientWidth - 2 * margin;
  const spanX = right - left || 1, spanY = high - low || 1;
  // As tall as the points ask for, within reason; both axes share one scale where they mean
  // distances.
  const wanted = data.distances ? (width * spanY) / spanX : width * 0.75;
  const height = Math.max(0.65 * width, Math.min(wanted, tallest(), 1.1 * width));
  let [sx, sy] = [width / spanX, height / spanY];
  if (data.distances) sx = sy = Math.min(sx, sy);
  const dx = margin + (width - sx * spanX) / 2, dy = margin + (height - sy * spanY) / 2;
  const put = ([x, y]) => [dx + sx * (x - left), dy + sy * (high - y)];
  return {
    height: height + 2 * margin,
    source: data.source.points.map(put),
    target: data.target.points.map(put),
  };
}

let places = null;

function marker(pen, side, [x, y], fill, size) {
  pen.beginPath();
  if (side === "source") pen.arc(x, y, size, 0, 2 * Math.PI);
  else for (const turn of [1, -1]) {
    pen.moveTo(x - size, y - turn * size);
    pen.lineTo(x + size, y + turn * size);
  }
  const outline = style("--panel");
  if (side === "source") {
    pen.fillStyle = fill; pen.strokeStyle = outline; pen.lineWidth = 1;
    pen.fill(); pen.stroke();
  } else {
    pen.lineCap = "round";
    pen.strokeStyle = outline; pen.lineWidth = 4; pen.stroke();
    pen.strokeStyle = fill; pen.lineWidth = 2.2; pen.stroke();
  }
}

function drawClouds() {
  const canvas = byId("clouds");
  places = place(canvas);
  const { pen, width, height } = prepare(canvas, places.height);
  pen.clearRect(0, 0, width, height);
  const lines = pairs();
  const alone = state.side !== null;
  const largest = alone ? Math.max(...lines.map(([, , share]) => share)) : 1;
  // Many lines at full strength would fill the plane with one colour.
  const strength = alone ? 1 : Math.min(1, 12 / Math.sqrt(1 + data.source.points.length));
  for (const [i, j, share] of lines) {
    pen.globalAlpha = Math.min(1, (0.05 + 0.85 * Math.sqrt(share / largest)) * strength);
    pen.lineWidth = 0.5 + (2 * share) / largest;
    pen.strokeStyle = color(data.source.groups[i]);
    pen.beginPath();
    pen.moveTo(...places.source[i]);
    pen.lineTo(...places.target[j]);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  const reached = new Set(lines.map(([i, j]) => (state.side === "source" ? j : i)));
  const size = Math.max(2.2, Math.min(4.5, 45 / Math.sqrt(data.source.points.length)));
  for (const side of SIDES) places[side].forEach((spot, k) => {
    const chosen = side === state.side && k === state.index;
    pen.globalAlpha = !alone || chosen || (side !== state.side && reached.has(k)) ? 1 : 0.25;
    marker(pen, side, spot, color(data[side].groups[k]), chosen ? 1.8 * size : size);
  });
  pen.globalAlpha = 1;
}

function drawMatrix() {
  const canvas = byId("matrix");
  const [n, m] = [data.source.points.length, data.target.points.length];
  const wanted = (canvas.clientWidth * n) / m;
  const { pen, width, height } = prepare(canvas, Math.max(120, Math.min(wanted, tallest())));
  const [cw, ch] = [width / m, height / n];
  pen.clearRect(0, 0, width, height);
  const largest = Math.max(...plan.rows.flat().map(([, share]) => share), 1e-9);
  const mass = style("--mass");
  plan.rows.forEach((list, row) => list.forEach(([j, share]) => {
    const i = data.source.order[row], k = data.target.order[j];
    pen.fillStyle = `rgba(${mass}, ${(0.06 + 0.94 * Math.sqrt(share / largest)).toFixed(3)})`;
    const [x, y] = [Math.round(k * cw), Math.round(i * ch)]; // whole pixels: no seams
    const [right, low] = [Math.round((k + 1) * cw), Math.round((i + 1) * ch)];
    pen.fillRect(x, y, Math.max(right - x, 1), Math.max(low - y, 1));
  }));
  pen.strokeStyle = style("--rule"); pen.lineWidth = 1;
  for (const cut of data.source.cuts) stripe(pen, 0, cut * ch, width, cut * ch);
  for (const cut of data.target.cuts) stripe(pen, cut * cw, 0, cut * cw, height);
  pen.strokeRect(0.5, 0.5, width - 1, height - 1);
  if (state.side === null) return;
  pen.strokeStyle = style("--accent"); pen.lineWidth = 2;
  const at = data[state.side].order[state.index];
  if (state.side === "source") pen.strokeRect(1, at * ch - 1, width - 2, ch + 2);
  else pen.strokeRect(at * cw - 1, 1, cw + 2, height - 2);
}

function stripe(pen, x0, y0, x1, y1) {
  pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke();
}

// --- words and figures -------------------------------------------------------------------------

function groupName(side, index) {
  const group = data[side].groups[index];
  return group < 0 ? "no group" : `group ${data.groups[group]}`;
}

function showPoint() {
  const { side, index } = state;
  const told = byId("point");
  if (side === null) {
    told.textContent = "None is chosen: all lines are drawn.";
    return;
  }
  const other = side === "source" ? "target" : "source";
  const list = [...(side === "source" ? plan.rows : plan.cols)[index]];
  list.sort((one, two) => two[1] - one[1]);
  const entropy = list.reduce((sum, [, share]) => sum - share * Math.log(share), 0);
  const first = list.slice(0, 5)
    .map(([k, share]) => `${other} ${k} (${groupName(other, k)}) ${percent(share)}`);
  const rest = list.length - first.length;
  told.textContent = `${side === "source" ? "Source" : "Target"} ${index} `
    + `(${groupName(side, index)}) has ${number(Math.exp(entropy), 2)} effective partners: `
    + first.join(", ") + (rest > 0 ? `, and ${rest} more.` : ".");
}

function buildFigures() {
  const list = byId("figures");
  for (const [name, title, meaning] of FIGURES) {
    const box = element("div", list);
    element("dt", box, title);
    const cell = element("dd", box);
    element("output", cell).id = `figure-${name}`;
    cell.insertAdjacentHTML("beforeend", '<svg viewBox="0 0 100 30" preserveAspectRatio="none" '
      + 'aria-hidden="true"><polyline></polyline><line y1="0" y2="30"></line></svg>');
    cell.lastElementChild.id = `curve-${name}`;
    element("small", cell, meaning);
  }
}

function showCurves() {
  const stops = path().stops;
  for (const [name] of FIGURES) {
    const values = stops.map((one) => one[name] ?? 0);
    // From 0, so that small changes look small.
    const [low, high] = [Math.min(0, ...values), name === "concentration" ? 1 : Math.max(...values)];
    const across = (k) => (100 * k) / Math.max(1, stops.length - 1);
    const points = values.map((x, k) => `${across(k)},${28 - (26 * (x - low)) / (high - low || 1)}`);
    const curve = byId(`curve-${name}`);
    curve.querySelector("polyline").setAttribute("points", points.join(" "));
    for (const end of ["x1", "x2"]) curve.querySelector("line").setAttribute(end, across(state.stop));
  }
}

function show() {
  const here = stop(), dial = byId("dial");
  plan = unpack(here.plan);
  dial.max = path().stops.length - 1;
  dial.value = state.stop;
  const said = `${path().dial} ${short(here.dial)}`;
  dial.setAttribute("aria-valuetext", said);
  byId("dial-label").textContent = `Dial: ${path().dial}`;
  byId("dial-value").textContent = short(here.dial);
  const [first, last] = byId("ends").children;
  first.textContent = `${short(path().stops[0].dial)} (${path().ends[0]})`;
  last.textContent = `${short(path().stops.at(-1).dial)} (${path().ends[1]})`;
  byId("about").textContent = path().about;
  for (const [name] of FIGURES) {
    const shown = byId(`figure-${name}`);
    shown.textContent = figure(name, here[name]);
    shown.dataset.value = here[name];
  }
  byId("figure-gap").classList.toggle("missed", !here.converged);
  byId("figure-gap").textContent += here.converged ? "" : " (not reached)";
  showCurves();
  draw();
}

function showLegend() {
  const legend = byId("legend");
  legend.replaceChildren();
  for (const name of ["● source", "✕ target"]) element("li", legend, name);
  data.groups.slice(0, 12).forEach((name, group) => {
    const item = element("li", legend);
    element("i", item).style.background = color(group);
    item.append(name);
  });
}

function draw() {
  drawClouds();
  drawMatrix();
  showPoint();
}

// --- what the reader does ----------------------------------------------------------------------

function choose(side, index) {
  if (state.side === side && state.index === index) return;
  Object.assign(state, { side, index });
  draw();
}

function nearest(event) {
  const box = byId("clouds").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let [best, found] = [22 ** 2, [null, null]];
  for (const side of SIDES) places[side].forEach(([px, py], k) => {
    const far = (px - x) ** 2 + (py - y) ** 2;
    if (far < best) [best, found] = [far, [side, k]];
  });
  return found;
}

function underPointer(event) {
  const box = byId("matrix").getBoundingClientRect();
  const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  const spot = (side, share) => {
    const size = data[side].order.length;
    return data[side].order.indexOf(Math.max(0, Math.min(size - 1, Math.floor(share * size))));
  };
  return event.shiftKey ? ["target", spot("target", x)] : ["source", spot("source", y)];
}

function walk(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const side = state.side ?? "source";
  const size = data[side].points.length;
  if (step) choose(side, state.index === null ? 0 : (state.index + step + size) % size);
  else if (event.key.toLowerCase() === "t") {
    const other = side === "source" ? "target" : "source";
    choose(other, Math.min(state.index ?? 0, data[other].points.length - 1));
  } else if (event.key === "Escape") choose(null, null);
  else return;
  event.preventDefault();
}

function letGo(event) {
  if (event.pointerType !== "touch") choose(null, null); // a finger leaves whenever it is lifted
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "light" : "dark";
  byId("theme").setAttribute("aria-pressed", String(dark));
  byId("theme").setAttribute("aria-label", "dark colours");
  showLegend();
}

function start() {
  byId("title").textContent = data.title;
  byId("lead").textContent = data.lead;
  document.title = `${data.title} · structot explore`;
  const night = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(night.matches);
  night.addEventListener("change", () => { setTheme(night.matches); draw(); });
  byId("theme").addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme !== "dark");
    draw();
  });

  data.paths.forEach((one, k) => {
    const label = element("label", byId("structures"));
    const button = element("input", label);
    Object.assign(button, { type: "radio", name: "structure", value: one.name, checked: k === 0 });
    element("span", label, one.name);
    button.addEventListener("change", () => {
      // The new path may have other dials: stay at the same place between its ends.
      const place = state.stop / Math.max(1, path().stops.length - 1);
      state.structure = k;
      state.stop = Math.round(place * (path().stops.length - 1));
      show();
    });
  });
  buildFigures();
  state.stop = data.start;
  byId("dial").addEventListener("input", (event) => {
    state.stop = Number(event.target.value);
    show();
  });
  const clouds = byId("clouds"), matrix = byId("matrix");
  clouds.addEventListener("pointermove", (event) => choose(...nearest(event)));
  clouds.addEventListener("pointerdown", (event) => choose(...nearest(event)));
  clouds.addEventListener("pointerleave", letGo);
  clouds.addEventListener("keydown", walk);
  clouds.addEventListener("blur", () => choose(null, null));
  matrix.addEventListener("pointermove", (event) => choose(...underPointer(event)));
  matrix.addEventListener("pointerleave", letGo);
  window.addEventListener("resize", draw);
  show();
}

start();
