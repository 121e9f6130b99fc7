// The tree viewer: choose a class and a tree, open and close nodes, inspect one.

const MOST_OPEN = 40; // nodes shown when a tree is first drawn

const REASONS = {
  N1: "in training, all rows left of c were positive",
  N2: "in training, all rows right of c were positive",
  N3: "in training, all rows left of c were negative",
  N4: "in training, all rows right of c were negative",
  e: "c is the middle of the four extremes",
  gini: "c gives the least Gini impurity",
};

function TreeViewer(data, box, detail, controls) {
  let tree = null;
  let items = new Map(); // node -> its list item
  let selected = 0;
  let open = new Set();

  const isLeaf = (node) => tree.left[node] < 0;

  const parentOf = (node) => tree.parent[node];

  const positiveClass = () => className(data.classes[tree.positive_class]);

  function show(number, node = 0) {
    tree = data.trees.find((each) => each.number === number);
    tree.parent = new Array(tree.left.length).fill(-1);
    tree.left.forEach((left, above) => {
      if (left >= 0) tree.parent[left] = tree.parent[left + 1] = above;
    });
    open = new Set();
    let shown = 1;
    for (let i = 0; i < tree.left.length && shown + 2 <= MOST_OPEN; i += 1) {
      if (!isLeaf(i) && (i === 0 || open.has(parentOf(i)))) {
        open.add(i);
        shown += 2;
      }
    }
    for (let above = parentOf(node); above >= 0; above = parentOf(above)) open.add(above);
    draw();
    select(node, false);
  }

  function draw() {
    items = new Map();
    const label = `Tree ${tree.number}: ${positiveClass()} against all other classes`;
    box.replaceChildren(el("ul", { role: "tree", "aria-label": label }, makeItem(0, 1, 1, 1)));
  }

  // An item with all that is open below it, without recursion: trees may be thousands deep.
  function makeItem(top, topLevel, position, size) {
    const root = makeOne(top, topLevel, position, size);
    const waiting = [[top, topLevel, root]];
    while (waiting.length) {
      const [node, level, item] = waiting.pop();
      if (isLeaf(node) || !open.has(node)) continue;
      const left = tree.left[node];
      const pair = [makeOne(left, level + 1, 1, 2), makeOne(left + 1, level + 1, 2, 2)];
      item.append(el("ul", { role: "group" }, ...pair));
      waiting.push([left, level + 1, pair[0]], [left + 1, level + 1, pair[1]]);
    }
    return root;
  }

  function makeOne(node, level, position, size) {
    const leaf = isLeaf(node);
    const item = el("li", {
      role: "treeitem",
      "aria-level": level,
      "aria-posinset": position,
      "aria-setsize": size,
      "aria-selected": "false",
      "aria-expanded": leaf ? undefined : String(open.has(node)),
      "aria-label": nodeLabel(node, level),
      tabindex: "-1",
      "data-node": node,
    });
    items.set(node, item);
    item.append(makeRow(node, position, level, leaf));
    return item;
  }

  function nodeLabel(node, level) {
    const kind = isLeaf(node) ? "leaf" : "split";
    return `${kind} ${node}, ${count(tree.n[node], "row")}, ${percent(tree.value[node])} ${positiveClass()}`;
  }

  function makeRow(node, position, level, leaf) {
    const value = tree.value[node];
    const side = level === 1 ? "" : position === 1 ? "< c " : "\u2265 c ";
    const twist = el("span", { class: "twist" }, leaf ? "" : open.has(node) ? "\u25be" : "\u25b8");
    const meter = svg(
      "svg",
      { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { width: 100 * value, height: 10, class: "positive" }),
      svg("rect", { x: 100 * value, width: 100 * (1 - value), height: 10, class: "negative" }),
    );
    const strongest = !leaf && tree.terms[node][0].length ? data.columns[tree.terms[node][0][0]] : "";
    const text = strongest.length > 26 ? strongest.slice(0, 25) + "\u2026" : strongest;
    return el(
      "div",
      { class: "node" },
      twist,
      side ? el("span", { class: "faint" }, side) : null,
      el("span", leaf ? { class: "leaf-name" } : {}, (leaf ? "leaf " : "split ") + node),
      meter,
      el("span", {}, percent(value)),
      el("span", { class: "faint" }, count(tree.n[node], "row") + (text ? " \u00b7 " + text : "")),
    );
  }

  function setOpen(node, isOpen) {
    if (isLeaf(node) || open.has(node) === isOpen) return;
    if (isOpen) open.add(node);
    else open.delete(node);
    const old = items.get(node);
    const fresh = makeItem(node, Number(old.getAttribute("aria-level")), Number(old.getAttribute("aria-posinset")), Number(old.getAttribute("aria-setsize")));
    old.replaceWith(fresh);
    select(visible().includes(selected) ? selected : node, true);
  }

  function openAll(isOpen) {
    open = new Set(isOpen ? tree.left.keys() : []);
    draw();
    select(isOpen ? selected : 0, false);
  }

  // Nodes from top to bottom as they are shown.
  function visible() {
    const shown = [];
    const waiting = [0];
    while (waiting.length) {
      const node = waiting.pop();
      shown.push(node);
      if (!isLeaf(node) && open.has(node)) waiting.push(tree.left[node] + 1, tree.left[node]);
    }
    return shown;
  }

  function select(node, moveFocus) {
    for (const item of box.querySelectorAll('[tabindex="0"], [aria-selected="true"]')) {
      item.setAttribute("tabindex", "-1");
      item.setAttribute("aria-selected", "false");
    }
    selected = node;
    const item = items.get(node);
    item.setAttribute("tabindex", "0");
    item.setAttribute("aria-selected", "true");
    if (moveFocus) {
      item.focus({ preventScroll: true });
      item.firstChild.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    drawDetail();
  }

  function drawDetail() {
    const node = selected;
    const elements = isLeaf(node) ? describeLeaf(node) : describeSplit(node);
    detail.replaceChildren(...elements, ...listRows(node));
  }

  function describeSplit(node) {
    const [threshold, rawThreshold, kind, extremes, pure, histogram] = tree.splits[node];
    const name = positiveClass();
    const width = Math.max(Math.min(detail.clientWidth - 34, 620), 220);
    const sides = pure.map(([side, isPositive]) => [side, isPositive ? "positive" : "negative"]);
    const split = { threshold, extremes, histogram, pure: sides };
    return [
      el("h3", {}, `Split ${node} of tree ${tree.number}: ${name} against all other classes`),
      el("p", {}, `${describeValue(node)} Rows with a projection below c go left, the others right; ${REASONS[kind]} (${kind}).`),
      ...describeTerms(node, "Weights of the projection"),
      el("p", { class: "faint" }, `The threshold c is ${number(threshold)}. Weights and c are for standardised columns; for raw columns, use the raw weights and ${number(rawThreshold)}.`),
      el("h3", {}, "Distribution of the projection"),
      el("figure", {}, distribution(split, width, name), el("figcaption", {}, key("positive", `positive: ${name} (upwards)`), key("negative", "negative: all other classes (downwards)"), `Rows of this report's data that reach the split: ${count(sum(histogram[2]) + sum(histogram[3]), "row")}. Triangles: extremes in training${pure.length ? "; shaded: the side that was pure in training" : ""}.`)),
    ];
  }

  function describeLeaf(node) {
    const hasSlopes = tree.terms[node][0].length > 0;
    return [
      el("h3", {}, `Leaf ${node} of tree ${tree.number}: ${positiveClass()} against all other classes`),
      el("p", {}, describeValue(node)),
      el("p", {}, hasSlopes ? "The leaf outputs this fraction plus the sum of slope times (value minus mean), clipped to the range from 0 to 1." : "The leaf outputs this fraction for every row."),
      ...(hasSlopes ? describeTerms(node, "Slopes") : []),
    ];
  }

  function describeValue(node) {
    const rows = count(tree.n[node], "training row");
    const fraction = percent(tree.value[node]);
    if (!data.is_shrunk) return `${rows}, ${fraction} of them ${positiveClass()}.`;
    return `${rows}; fraction of ${positiveClass()}: ${fraction}, after shrinkage towards the nodes above.`;
  }

  function describeTerms(node, caption) {
    const [columns, weights, nHidden] = tree.terms[node];
    const terms = columns.map((column, i) => ({
      name: data.columns[column],
      value: weights[i],
      raw: weights[i] / data.std[column],
    }));
    const note = nHidden ? `; ${nHidden.toLocaleString("en")} smaller ones are not shown` : "";
    return [signedBars(caption + note, terms)];
  }

  function listRows(node) {
    const here = data.rows.filter((row, i) => passes(tree.leaf[i], node));
    const links = here.map((row) =>
      el("a", { href: `#why-${row.number}`, class: row.true === row.predicted ? "" : "missed", title: `${data.classes[row.true]}, predicted ${data.classes[row.predicted]}` }, `${row.number}: ${data.classes[row.true]}${row.true === row.predicted ? "" : " \u2717"}`),
    );
    return [
      el("h3", {}, "Rows here"),
      el("p", { class: "faint" }, here.length ? `${count(here.length, "row")} of the ${data.rows.length} in this report; \u2717 marks a wrong prediction.` : `None of the ${count(data.rows.length, "row")} in this report.`),
      el("div", { class: "rows" }, links),
    ];
  }

  function passes(leaf, node) {
    for (let above = leaf; above >= node; above = parentOf(above)) if (above === node) return true;
    return false;
  }

  function move(event) {
    const shown = visible();
    const at = shown.indexOf(selected);
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 };
    if (event.key in steps) {
      const next = shown[steps[event.key]];
      if (next !== undefined) select(next, true);
    } else if (event.key === "ArrowRight") {
      if (!isLeaf(selected) && open.has(selected)) select(tree.left[selected], true);
      else setOpen(selected, true);
    } else if (event.key === "ArrowLeft") {
      if (!isLeaf(selected) && open.has(selected)) setOpen(selected, false);
      else if (selected > 0) select(parentOf(selected), true);
    } else if (event.key === "Enter" || event.key === " ") {
      setOpen(selected, !open.has(selected));
    } else {
      return;
    }
    event.preventDefault();
  }

  box.addEventListener("keydown", move);
  box.addEventListener("click", (event) => {
    const item = event.target.closest("[data-node]");
    if (!item) return;
    const node = Number(item.dataset.node);
    if (event.target.classList.contains("twist")) setOpen(node, !open.has(node));
    select(node, true);
  });
  window.addEventListener("resize", () => tree && detail.clientWidth && drawDetail());

  fillControls(data, controls, show, openAll);
  return { show, redraw: () => tree && drawDetail() };
}

function fillControls(data, controls, show, openAll) {
  const classes = [...new Set(data.trees.map((tree) => tree.positive_class))].sort((a, b) => a - b);
  const choose = el("select", { id: "tree-class" }, classes.map((k) => el("option", { value: k }, data.classes[k])));
  const which = el("select", { id: "tree-number" });
  const list = (positiveClass) => {
    const trees = data.trees.filter((tree) => tree.positive_class === positiveClass);
    which.replaceChildren(...trees.map((tree) => el("option", { value: tree.number }, `${tree.number} (estimator ${tree.estimator}, ${count(tree.left.length, "node")})`)));
  };
  choose.addEventListener("change", () => {
    list(Number(choose.value));
    show(Number(which.value));
  });
  which.addEventListener("change", () => show(Number(which.value)));
  controls.append(
    el("label", {}, "Class", choose),
    el("label", {}, "Tree", which),
    el("button", { type: "button", onclick: () => openAll(true) }, "Expand all"),
    el("button", { type: "button", onclick: () => openAll(false) }, "Collapse all"),
  );
  list(classes[0]);
  controls.goTo = (number) => {
    const tree = data.trees.find((each) => each.number === number);
    choose.value = String(tree.positive_class);
    list(tree.positive_class);
    which.value = String(number);
  };
}
