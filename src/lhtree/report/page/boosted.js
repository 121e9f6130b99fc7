// What the tree viewer says of boosted trees: conditions, and what nodes add to the scores.
// Of the trees of a forest of numbers, it is what nodes predict.

function BoostedNodes(data) {
  const most = new Map(); // tree -> the largest value of its nodes

  const isMean = data.kind === "averaged";

  const title = () => isMean ? "votes for a number" : (data.outputs.length > 1 && !isMirrored() ? "adds to all scores" : `adds to the ${data.outputs.at(-1)}`);

  const legend = isMean
    ? "The number is what a node predicts: a leaf for its rows, a split on average; the bar shows how far it is from the mean. The prediction of the forest is the mean over all its trees. Rows that fulfil the condition of a split go left."
    : "The bar and the number show what a node adds to the score: a leaf to its rows, a split on average; of several scores, to the one that it changes most. Rows that fulfil the condition of a split go left.";

  const option = (tree) => `${tree.number} (${count(tree.left.length, "node")})`;

  // Two classes have one score: that of the second.
  function isMirrored() {
    return data.classes.length === 2;
  }

  function strongest(values) {
    let best = 0;
    values.forEach((value, k) => {
      if (Math.abs(value) > Math.abs(values[best])) best = k;
    });
    return best;
  }

  function largest(tree) {
    if (!most.has(tree)) most.set(tree, Math.max(...tree.value.flat().map(Math.abs)) || 1);
    return most.get(tree);
  }

  function change(tree, node) {
    if (isMean) return number(tree.predicted[node]);
    const k = strongest(tree.value[node]);
    const text = signedNumber(tree.value[node][k]);
    return tree.value[node].length > 1 ? `${cutName(className(data.classes[k] ?? data.outputs[k]))} ${text}` : text;
  }

  function added(tree, node) {
    if (isMean) return number(tree.predicted[node]);
    const k = strongest(tree.value[node]);
    const text = signedNumber(tree.value[node][k]);
    return `${text} to the ${data.outputs[isMirrored() ? 1 : k]}`;
  }

  const label = (tree, node) => `${percent(tree.fraction[node])} of the rows, ${change(tree, node)}`;

  function line(tree, node, side) {
    const value = tree.value[node][strongest(tree.value[node])];
    const width = Math.abs(value) / largest(tree) / 2;
    return {
      side: ["", "yes ", "no "][side],
      meter: meter([value < 0 ? "down" : "up", value < 0 ? 0.5 - width : 0.5, width]),
      value: change(tree, node),
      note: percent(tree.fraction[node]) + " of rows" + (tree.left[node] >= 0 ? " \u00b7 " + tree.splits[node][2] : ""),
    };
  }

  function values(tree, node) {
    const listed = tree.value[node];
    if (listed.length === 1) return [];
    const scale = Math.max(...listed.map(Math.abs)) || 1;
    const rows = listed.map((value, k) => barRow(data.classes[k] ?? data.outputs[k], bar(0, value, -scale, scale, value < 0 ? "down" : "up", 0), signedNumber(value)));
    return [barTable("What the node adds to each score", ["score", "", "adds"], rows)];
  }

  function split(tree, node) {
    const [left, right] = tree.splits[node];
    const [below, above] = [tree.counted[tree.left[node]], tree.counted[tree.left[node] + 1]];
    return [
      el("h3", {}, `Split ${node} of tree ${tree.number}: ${title()}`),
      el("p", {}, `${percent(tree.fraction[node])} of the tree's training rows; on average, the leaves below ${isMean ? "predict" : "add"} ${added(tree, node)}.`),
      el("p", {}, "Left: ", el("b", {}, left), `. Right: ${right}.`),
      el("p", { class: "faint" }, `Of this report's data, ${count(below, "row")} ${below === 1 ? "goes" : "go"} left and ${count(above, "row")} right.`),
      ...terms(tree.terms[node]),
      ...values(tree, node),
    ];
  }

  function terms(listed) {
    if (!listed) return [];
    const [columns, weights, raw, nHidden] = listed;
    const items = columns.map((column, i) => ({ name: data.columns[column], value: weights[i], raw: raw[i] }));
    const note = nHidden ? `; ${nHidden.toLocaleString("en")} smaller ones are not shown` : "";
    return [signedBars("Weights of the hyperplane, for standardised and for raw columns" + note, items)];
  }

  function leaf(tree, node) {
    return [
      el("h3", {}, `Leaf ${node} of tree ${tree.number}: ${title()}`),
      el("p", {}, `${percent(tree.fraction[node])} of the tree's training rows. ${isMean ? `The leaf predicts ${added(tree, node)} for` : `The leaf adds ${added(tree, node)} of`} each of its rows. Of this report's data, ${count(tree.counted[node], "row")} end${tree.counted[node] === 1 ? "s" : ""} here.`),
      ...values(tree, node),
    ];
  }

  return { title, legend, option, label, line, split, leaf, terms };
}
