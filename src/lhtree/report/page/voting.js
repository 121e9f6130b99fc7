// What the tree viewer says of trees that vote: fractions of a class, projections and slopes.

const REASONS = {
  N1: "in training, all rows left of c were positive",
  N2: "in training, all rows right of c were positive",
  N3: "in training, all rows left of c were negative",
  N4: "in training, all rows right of c were negative",
  e: "c is the middle of the four extremes",
  gini: "c gives the least Gini impurity",
};

function VotingNodes(data) {
  const positiveClass = (tree) => className(data.classes[tree.positive_class]);

  const title = (tree) => `${positiveClass(tree)} against all other classes`;

  const legend = "The bar shows the fraction of the tree's class among a node's training rows (after shrinkage, if the model uses it); the name is the feature with the largest weight.";

  const option = (tree) => `${tree.number} (estimator ${tree.estimator}, ${count(tree.left.length, "node")})`;

  const label = (tree, node) => `${count(tree.n[node], "row")}, ${percent(tree.value[node])} ${positiveClass(tree)}`;

  // What stands in the line of a node, after its number.
  function line(tree, node, side) {
    const value = tree.value[node];
    const strongest = tree.left[node] >= 0 && tree.terms[node][0].length ? data.columns[tree.terms[node][0][0]] : "";
    const text = cutName(strongest);
    return {
      side: ["", "< c ", "\u2265 c "][side],
      meter: meter(["positive", 0, value], ["negative", value, 1 - value]),
      value: percent(value),
      note: count(tree.n[node], "row") + (text ? " \u00b7 " + text : ""),
    };
  }

  function split(tree, node, space) {
    const [threshold, rawThreshold, kind, extremes, pure, histogram] = tree.splits[node];
    const name = positiveClass(tree);
    const width = Math.max(Math.min(space - 34, 620), 220);
    const sides = pure.map(([side, isPositive]) => [side, isPositive ? "positive" : "negative"]);
    const drawn = { threshold, extremes, histogram, pure: sides };
    return [
      el("h3", {}, `Split ${node} of tree ${tree.number}: ${name} against all other classes`),
      el("p", {}, `${describeValue(tree, node)} Rows with a projection below c go left, the others right; ${REASONS[kind]} (${kind}).`),
      ...describeTerms(tree, node, "Weights of the projection"),
      el("p", { class: "faint" }, `The threshold c is ${number(threshold)}. Weights and c are for standardised columns; for raw columns, use the raw weights and ${number(rawThreshold)}.`),
      el("h3", {}, "Distribution of the projection"),
      el("figure", {}, distribution(drawn, width, name), el("figcaption", {}, key("positive", `positive: ${name} (upwards)`), key("negative", "negative: all other classes (downwards)"), `Rows of this report's data that reach the split: ${count(sum(histogram[2]) + sum(histogram[3]), "row")}. Triangles: extremes in training${pure.length ? "; shaded: the side that was pure in training" : ""}.`)),
    ];
  }

  function leaf(tree, node) {
    const hasSlopes = tree.terms[node][0].length > 0;
    return [
      el("h3", {}, `Leaf ${node} of tree ${tree.number}: ${positiveClass(tree)} against all other classes`),
      el("p", {}, describeValue(tree, node)),
      el("p", {}, hasSlopes ? "The leaf outputs this fraction plus the sum of slope times (value minus mean), clipped to the range from 0 to 1." : "The leaf outputs this fraction for every row."),
      ...(hasSlopes ? describeTerms(tree, node, "Slopes") : []),
    ];
  }

  function describeValue(tree, node) {
    const rows = count(tree.n[node], "training row");
    const fraction = percent(tree.value[node]);
    if (!data.is_shrunk) return `${rows}, ${fraction} of them ${positiveClass(tree)}.`;
    return `${rows}; fraction of ${positiveClass(tree)}: ${fraction}, after shrinkage towards the nodes above.`;
  }

  function describeTerms(tree, node, caption) {
    const [columns, weights, nHidden] = tree.terms[node];
    const terms = columns.map((column, i) => ({
      name: data.columns[column],
      value: weights[i],
      raw: weights[i] / data.std[column],
    }));
    const note = nHidden ? `; ${nHidden.toLocaleString("en")} smaller ones are not shown` : "";
    return [signedBars(caption + note, terms)];
  }

  return { title, legend, option, label, line, split, leaf, positiveClass };
}
