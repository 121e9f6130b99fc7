// Elements and numbers. Text always becomes a text node: nothing is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function byId(id) {
  return document.getElementById(id);
}

// A name that may break after its separators.
function soft(name) {
  return name.split(/(?<=[_/:])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

const MINUS = "\u2212";

function number(value) {
  if (value === null) return "missing";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-4 || size >= 1e7)
      ? value.toExponential(2)
      : value.toLocaleString("en", { maximumSignificantDigits: 4 });
  return text.replace("-", MINUS);
}

function signed(value, digits) {
  return (value < 0 ? MINUS : "+") + Math.abs(value).toFixed(digits);
}

function percent(fraction) {
  if (fraction > 0 && fraction < 0.001) return "<0.1 %";
  if (fraction < 1 && fraction > 0.999) return ">99.9 %";
  const isRound = fraction === 0 || fraction === 1 || (fraction >= 0.0995 && fraction <= 0.9005);
  return (100 * fraction).toFixed(isRound ? 0 : 1) + " %";
}

function count(n, noun) {
  return n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
}

function signedNumber(value) {
  return (value < 0 ? "" : "+") + number(value);
}

function cutName(name) {
  return name.length > 26 ? name.slice(0, 25) + "\u2026" : name;
}

// What a row is, or is predicted to be: a class or a number.
function nameTarget(data, target) {
  return data.classes.length ? data.classes[target] : number(target);
}

function isMissed(data, row) {
  return data.classes.length > 0 && row.true !== row.predicted;
}

function className(label) {
  return /^[\d.+-]+$|^(True|False)$/.test(label) ? "class " + label : label;
}
