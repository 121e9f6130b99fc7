// What the tree viewer says of forests of classes whose leaves are constant: conditions, and
// shares of the tree's class.

function ShareNodes(data) {
  const { title, option, positiveClass } = VotingNodes(data);
  const { terms } = BoostedNodes(data);

  const legend = "The bar and the number show the share of the tree's class: a leaf votes with it for its rows, a split has the mean of the leaves below. The vote of the forest is the mean over the trees of the class. Rows that fulfil the condition of a split go left.";

  const label = (tree, node) => `${percent(tree.fraction[node])} of the rows, ${percent(tree.share[node])} ${positiveClass(tree)}`;

  function line(tree, node, side) {
    const share = tree.share[node];
    return {
      side: ["", "yes ", "no "][side],
      meter: meter(["positive", 0, share], ["negative", share, 1 - share]),
      value: percent(share),
      note: percent(tree.fraction[node]) + " of rows" + (tree.left[node] >= 0 ? " \u00b7 " + tree.splits[node][2] : ""),
    };
  }

  function describeShare(tree, node) {
    const shrunk = data.is_shrunk ? ", after shrinkage towards the nodes above" : "";
    return `${percent(tree.fraction[node])} of the tree's training rows; share of ${positiveClass(tree)}: ${percent(tree.share[node])}${shrunk}.`;
  }

  function split(tree, node, space) {
    const [left, right] = tree.splits[node];
    const name = positiveClass(tree);
    return [
      el("h3", {}, `Split ${node} of tree ${tree.number}: ${title(tree)}`),
      el("p", {}, describeShare(tree, node)),
      el("p", {}, "Left: ", el("b", {}, left), `. Right: ${right}.`),
      ...terms(tree.terms[node]),
      el("h3", {}, "Rows of this report's data"),
      el("p", { class: "faint" }, tree.cuts[node][2].map(([positive, negative], side) => `${["Left", "Right"][side]}: ${positive.toLocaleString("en")} ${name}, ${negative.toLocaleString("en")} of other classes. `)),
      ...distributions(tree, node, space),
    ];
  }

  function distributions(tree, node, space) {
    const [drawn, pure, counts] = tree.cuts[node];
    if (!drawn) return [];
    const [threshold, extremes, histogram] = drawn;
    const name = positiveClass(tree);
    const sides = pure.map(([side, isPositive]) => [side, isPositive ? "positive" : "negative"]);
    const shown = { threshold, extremes, histogram, pure: sides };
    const width = Math.max(Math.min(space - 34, 620), 220);
    const nWithout = sum(counts.flat()) - sum(histogram[2]) - sum(histogram[3]);
    const without = nWithout ? ` ${count(nWithout, "row")} without a value ${nWithout === 1 ? "is" : "are"} not drawn.` : "";
    const whole = `Projections: what is compared with c.${without} Triangles: extremes of these rows${pure.length ? "; shaded: a side with rows of one kind" : ""}.`;
    return [el("figure", {}, distribution(shown, width, name), el("figcaption", {}, key("positive", `positive: ${name} (upwards)`), key("negative", "negative: all other classes (downwards)"), whole))];
  }

  function leaf(tree, node) {
    return [
      el("h3", {}, `Leaf ${node} of tree ${tree.number}: ${title(tree)}`),
      el("p", {}, `${describeShare(tree, node)} The leaf votes with this share for every row. Of this report's data, ${count(tree.counted[node], "row")} end${tree.counted[node] === 1 ? "s" : ""} here.`),
    ];
  }

  return { title, legend, option, label, line, split, leaf };
}
