// Small helpers for elements. Texts are only ever set as text, so nothing that is typed becomes markup.

export const find = (id) => document.getElementById(id);

/** Make an element. Attributes whose value is null or false are left out; `on...` are listeners. */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** Replace the children of an element. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null));
}

/** Return a function that calls another one once no further call has come for some milliseconds. */
export function settle(milliseconds, action) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}

/** Show white space and control characters of a piece of text. */
export function visible(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/^ | $/g, "·").replace(/[\u0000-\u001f]/g, "�") || "(nothing)";
}

/** Write a probability as a percentage. */
export function percent(value) {
  if (value === 0 || value === 1) return `${100 * value} %`;
  if (value < 0.0001) return "<0.01 %";
  if (value > 0.999) return ">99.9 %";
  return `${(100 * value).toFixed(value < 0.01 ? 2 : 1)} %`;
}
