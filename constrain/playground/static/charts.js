// Charts as SVG. Each is an image with a description; the same numbers stand in a table beside it.

import { draw } from "./dom.js";

const WIDTH = 340, HEIGHT = 170, LEFT = 34, RIGHT = 12, TOP = 10, BOTTOM = 24;
const y = (value, top = 1) => TOP + (1 - Math.min(1, value / top)) * (HEIGHT - TOP - BOTTOM);

function frame(description, children, top = 1) {
  const grid = [0, 0.5 * top, top].flatMap((value) => [
    draw("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value, top), y2: y(value, top) }),
    draw("text", { x: LEFT - 6, y: y(value, top) + 4, "text-anchor": "end" }, String(value)),
  ]);
  return draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": description }, grid, children);
}

/** Columns of values from 0 to 1. */
export function columns(values, description) {
  const width = (WIDTH - LEFT - RIGHT) / Math.max(values.length, 12);
  const bars = values.map((value, index) => draw("rect", {
    class: "column", x: LEFT + index * width + width * 0.12, width: width * 0.76, y: y(value), height: Math.max(0.5, y(0) - y(value)), rx: 1,
  }));
  const labels = values.length ? [1, values.length].map((step) => draw("text", {
    x: LEFT + (step - 0.5) * width, y: HEIGHT - 8, "text-anchor": "middle",
  }, String(step))) : [];
  return frame(description, [...bars, ...(values.length > 1 ? labels : labels.slice(0, 1))]);
}

/** Lines of values from 0 to 1, each a list of [x, value] with a name. The colour and dashes go by its number. */
export function lines(series, description) {
  const most = Math.max(1, ...series.flatMap((one) => one.points.map(([x]) => x)));
  const x = (value) => LEFT + (value / most) * (WIDTH - LEFT - RIGHT);
  const highest = Math.max(...series.flatMap((one) => one.points.map(([, value]) => value)));
  const top = [0.1, 0.2, 0.5].find((value) => highest <= value) ?? 1;
  const drawn = series.map((one) => draw("polyline", {
    class: `line series-${one.colour}`, points: one.points.map(([at, value]) => `${x(at)},${y(value, top)}`).join(" "),
  }));
  const edge = draw("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, `${most} draws`);
  return frame(description, [...drawn, edge], top);
}
