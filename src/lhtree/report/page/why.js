// What leads to the prediction for one row, and what would change it.

function WhyPage(data, controls, box) {
  const rows = new Map(data.rows.map((row) => [row.number, row]));
  const choose = el("select", { id: "why-row" }, data.rows.map((row) => el("option", { value: row.number }, describeRow(row))));
  const classes = el("select", { id: "why-class" }, data.classes.map((label, k) => el("option", { value: k }, label)));
  const back = el("button", { type: "button", onclick: () => step(-1) }, "\u2190 Previous row");
  const forth = el("button", { type: "button", onclick: () => step(1) }, "Next row \u2192");

  function describeRow(row) {
    const [truth, predicted] = [data.classes[row.true], data.classes[row.predicted]];
    return row.true === row.predicted ? `row ${row.number}: ${truth}` : `row ${row.number}: ${truth} \u2717 predicted ${predicted}`;
  }

  function step(by) {
    const at = data.rows.findIndex((row) => row.number === Number(choose.value)) + by;
    if (data.rows[at]) location.hash = `#why-${data.rows[at].number}`;
  }

  function show(number) {
    const row = rows.get(number) ?? data.rows[0];
    choose.value = String(row.number);
    classes.value = String(row.predicted);
    draw();
  }

  function draw() {
    const row = rows.get(Number(choose.value));
    const at = data.rows.indexOf(row);
    back.disabled = at === 0;
    forth.disabled = at === data.rows.length - 1;
    box.replaceChildren(
      el("div", {}, verdict(row), contributions(row, Number(classes.value))),
      el("div", {}, probabilities(row), counterfactual(row)),
    );
  }

  function verdict(row) {
    const isRight = row.true === row.predicted;
    return el(
      "p",
      { class: "verdict" },
      `Row ${row.number} is `,
      el("b", {}, className(data.classes[row.true])),
      ", predicted ",
      el("b", {}, className(data.classes[row.predicted])),
      ": ",
      el("span", { class: isRight ? "hit-text" : "missed-text" }, isRight ? "right \u2713" : "wrong \u2717"),
    );
  }

  function contributions(row, k) {
    const [base, features, values, nOther, other, vote] = row.why[k];
    const steps = features.map((j, i) => ({ name: row.values[j], value: values[i] }));
    if (nOther) steps.push({ name: count(nOther, "other feature"), value: other });
    const label = className(data.classes[k]);
    return el(
      "div",
      { id: "contributions" },
      el("h3", {}, `What adds up to the vote for ${label}`),
      waterfall(`From the fraction of ${label} in training to the vote for it; each number is added to those above.`, base, steps, vote),
    );
  }

  function probabilities(row) {
    const order = data.classes.map((_, k) => k).sort((a, b) => row.proba[b] - row.proba[a]).slice(0, 12);
    const lines = order.map((k) => barRow(data.classes[k], bar(0, row.proba[k], 0, 1, "neutral"), row.proba[k].toFixed(4), k === row.predicted));
    const nHidden = data.classes.length - order.length;
    const note = nHidden ? ` ${nHidden} less probable ${nHidden === 1 ? "class is" : "classes are"} not shown.` : "";
    return el("div", {}, el("h3", {}, "Probabilities"), barTable(data.probability_note + note, ["class", "", ""], lines));
  }

  function counterfactual(row) {
    const found = row.counterfactual;
    const title = el("h3", {}, "Nearest counterfactual");
    if (found.predicted === null) return el("div", { id: "counterfactual" }, title, el("p", {}, found.message));
    const lines = found.changes.map(([name, from, to]) => el("tr", {}, el("th", { scope: "row" }, soft(name)), el("td", {}, from), el("td", {}, to)));
    const note = found.n_other ? ` ${count(found.n_other, "smaller change")} not shown in the table.` : "";
    return el(
      "div",
      { id: "counterfactual" },
      title,
      el("p", {}, "With these changes the prediction becomes ", el("b", {}, className(data.classes[found.predicted])), ". ", found.message, note),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { class: "text", scope: "col" }, "feature"), el("th", { scope: "col" }, "now"), el("th", { scope: "col" }, "would be"))), el("tbody", {}, lines))),
    );
  }

  choose.addEventListener("change", () => (location.hash = `#why-${choose.value}`));
  classes.addEventListener("change", draw);
  controls.append(el("label", {}, "Row", choose), el("label", {}, "Explain the vote for", classes), back, forth);
  return { show };
}
