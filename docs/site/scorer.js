// Order of search results: guides first, then the other pages, then single names of the reference.
var Scorer = {
  score: ([page, , , , score]) => {
    if (page.startsWith("docs/guides/")) return score + 100;
    return page.startsWith("docs/reference/dovetail-") ? score - 100 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
