// Pages and their addresses: #summary, #importances, #trees, #tree-3-5, #why, #why-17.

const data = JSON.parse(byId("data").textContent);
const nodes = ({ votes: VotingNodes, shares: ShareNodes }[data.kind] ?? BoostedNodes)(data);
byId("tree-legend").textContent = nodes.legend;
const viewer = TreeViewer(data, nodes, byId("tree"), byId("tree-detail"), byId("tree-controls"));
const why = WhyPage(data, byId("why-controls"), byId("why-box"));
const pages = ["summary", "trees", "importances", "why"];

// Without scripts, the pages are sections of one page and their names are anchors. With
// scripts, the browser must not scroll to the section, which is the only one shown.
for (const each of pages) byId(each).id = "page-" + each;

let hasTree = false;
function openPage() {
  const [name, ...numbers] = location.hash.slice(1).split("-");
  const page = name === "tree" ? "trees" : pages.includes(name) ? name : "summary";
  for (const each of pages) byId("page-" + each).hidden = each !== page;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === "#" + page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (page === "trees") openTree(numbers.map(Number));
  if (page === "why") why.show(numbers.length ? Number(numbers[0]) : data.rows[0].number);
}

function openTree([number, node]) {
  const tree = data.trees.find((each) => each.number === number);
  if (tree) {
    byId("tree-controls").goTo(number);
    viewer.show(number, node < tree.left.length ? node : 0);
  } else if (!data.trees.length) {
    byId("tree").textContent = "The model has no trees: it predicts the same for every row.";
  } else if (!hasTree) {
    viewer.show(Number(byId("tree-number").value));
  } else {
    viewer.redraw();
  }
  hasTree = true;
}

document.documentElement.classList.add("scripted");
window.addEventListener("hashchange", () => {
  openPage();
  window.scrollTo(0, 0);
});
window.addEventListener("load", () => window.scrollTo(0, 0));
openPage();
