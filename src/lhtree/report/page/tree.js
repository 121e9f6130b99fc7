// The tree viewer: choose a class and a tree, open and close nodes, inspect one.

const MOST_OPEN = 40; // nodes shown when a tree is first drawn

function TreeViewer(data, nodes, box, detail, controls) {
  let tree = null;
  let items = new Map(); // node -> its list item
  let selected = 0;
  let open = new Set();

  const isLeaf = (node) => tree.left[node] < 0;

  const parentOf = (node) => tree.parent[node];

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
    const label = `Tree ${tree.number}: ${nodes.title(tree)}`;
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
    return `${kind} ${node}, ${nodes.label(tree, node)}`;
  }

  function makeRow(node, position, level, leaf) {
    const { side, meter, value, note } = nodes.line(tree, node, level === 1 ? 0 : position);
    const twist = el("span", { class: "twist" }, leaf ? "" : open.has(node) ? "\u25be" : "\u25b8");
    return el(
      "div",
      { class: "node" },
      twist,
      side ? el("span", { class: "faint" }, side) : null,
      el("span", leaf ? { class: "leaf-name" } : {}, (leaf ? "leaf " : "split ") + node),
      meter,
      el("span", {}, value),
      el("span", { class: "faint" }, note),
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
    const elements = isLeaf(node) ? nodes.leaf(tree, node) : nodes.split(tree, node, detail.clientWidth);
    detail.replaceChildren(...elements, ...listRows(node));
  }

  function listRows(node) {
    const here = data.rows.filter((row, i) => passes(tree.leaf[i], node));
    const links = here.map((row) => {
      const [truth, predicted, isWrong] = [nameTarget(data, row.true), nameTarget(data, row.predicted), isMissed(data, row)];
      return el("a", { href: `#why-${row.number}`, class: isWrong ? "missed" : "", title: `${truth}, predicted ${predicted}` }, `${row.number}: ${truth}${isWrong ? " \u2717" : ""}`);
    });
    const mark = data.classes.length ? "; \u2717 marks a wrong prediction" : "";
    return [
      el("h3", {}, "Rows here"),
      el("p", { class: "faint" }, here.length ? `${count(here.length, "row")} of the ${data.rows.length} in this report${mark}.` : `None of the ${count(data.rows.length, "row")} in this report.`),
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

  fillControls(data, nodes, controls, show, openAll);
  return { show, redraw: () => tree && drawDetail() };
}

function fillControls(data, nodes, controls, show, openAll) {
  // Boosted trees serve all classes: there is nothing to choose.
  const classes = [...new Set(data.trees.map((tree) => tree.positive_class))].sort((a, b) => a - b);
  const choose = el("select", { id: "tree-class" }, classes.map((k) => el("option", { value: k }, data.classes[k])));
  const which = el("select", { id: "tree-number" });
  const list = (positiveClass) => {
    const trees = data.trees.filter((tree) => tree.positive_class === positiveClass);
    which.replaceChildren(...trees.map((tree) => el("option", { value: tree.number }, nodes.option(tree))));
  };
  choose.addEventListener("change", () => {
    list(Number(choose.value));
    show(Number(which.value));
  });
  which.addEventListener("change", () => show(Number(which.value)));
  controls.append(
    classes[0] === undefined ? "" : el("label", {}, "Class", choose),
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
