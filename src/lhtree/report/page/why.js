// What leads to the prediction for one row, and what would change it.

function WhyPage(data, controls, box) {
  const rows = new Map(data.rows.map((row) => [row.number, row]));
  const choose = el("select", { id: "why-row" }, data.rows.map((row) => el("option", { value: row.number }, describeRow(row))));
  const named = data.classes.length ? data.classes : data.outputs;
  const classes = el("select", { id: "why-class" }, named.map((label, k) => el("option", { value: k }, label)));
  const back = el("button", { type: "button", onclick: () => step(-1) }, "\u2190 Previous row");
  const forth = el("button", { type: "button", onclick: () => step(1) }, "Next row \u2192");

  function describeRow(row) {
    const [truth, predicted] = [nameTarget(data, row.true), nameTarget(data, row.predicted)];
    if (!data.classes.length) return `row ${row.number}: ${truth}, predicted ${predicted}`;
    return isMissed(data, row) ? `row ${row.number}: ${truth} \u2717 predicted ${predicted}` : `row ${row.number}: ${truth}`;
  }

  function step(by) {
    const at = data.rows.findIndex((row) => row.number === Number(choose.value)) + by;
    if (data.rows[at]) location.hash = `#why-${data.rows[at].number}`;
  }

  function show(number) {
    const row = rows.get(number) ?? data.rows[0];
    choose.value = String(row.number);
    classes.value = String(data.classes.length ? row.predicted : Math.floor(data.outputs.length / 2));
    draw();
  }

  function draw() {
    const row = rows.get(Number(choose.value));
    const at = data.rows.indexOf(row);
    back.disabled = at === 0;
    forth.disabled = at === data.rows.length - 1;
    box.replaceChildren(
      el("div", {}, verdict(row), contributions(row, Number(classes.value))),
      data.classes.length ? el("div", {}, probabilities(row), counterfactual(row)) : "",
    );
  }

  function verdict(row) {
    if (!data.classes.length) return verdictOfNumber(row);
    const isRight = !isMissed(data, row);
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

  function verdictOfNumber(row) {
    const error = row.predicted - row.true;
    const text = error === 0 ? "exactly right" : `${number(Math.abs(error))} too ${error > 0 ? "high" : "low"}`;
    return el("p", { class: "verdict" }, `Row ${row.number} is `, el("b", {}, number(row.true)), ", predicted ", el("b", {}, number(row.predicted)), `: ${text}.`);
  }

  function contributions(row, k) {
    const [base, features, values, nOther, other, score] = row.why[k];
    const steps = features.map((j, i) => ({ name: row.values[j], value: values[i] }));
    if (nOther) steps.push({ name: count(nOther, "other feature"), value: other });
    const isVote = data.has_votes;
    const label = isVote ? className(data.classes[k]) : "";
    const whole = isVote ? `vote for ${label}` : data.outputs[k];
    const start = isVote ? `the fraction of ${label} in training` : "the mean over the training rows";
    const end = isVote ? "the vote for it" : `the ${whole}`;
    return el(
      "div",
      { id: "contributions" },
      el("h3", {}, `What adds up to the ${whole}`),
      waterfall(data, `From ${start} to ${end}; each number is added to those above.`, base, steps, score),
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
  controls.append(el("label", {}, "Row", choose), named.length > 1 ? el("label", {}, `Explain the ${data.classes.length ? `${data.score} ${data.has_votes ? "for" : "of"}` : "score"}`, classes) : "", back, forth);
  return { show };
}
