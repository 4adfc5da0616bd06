// Pages to read come before pages to look things up in, which hold every word somewhere.
var Scorer = {
  score: ([page, title, anchor, text, score, file, kind]) => {
    if (kind === "index") return score + 100;
    if (/^(evidence|scenarios|papers|changes|contributing|architecture|threat-model|benchmarks|corrections)$/.test(page)) return score - 12;
    if (/^(api|gallery)\//.test(page) || /^(conventions|metrics|write-a-backend)$/.test(page)) return score - (kind === "text" ? 6 : 0);
    return score;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
