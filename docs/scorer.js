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

// A page need not hold every word: those that hold the most come first, after index entries all of whose words are asked for.
if (typeof Search !== "undefined") {
  const whole = Search.performTermsSearch;
  Search.performTermsSearch = (words, excluded) => {
    const found = new Map();
    for (const word of words)
      for (const result of whole(new Set([word]), excluded)) {
        const known = found.get(result[0]) ?? { result, words: 0 };
        known.result[4] = Math.max(known.result[4], result[4]);
        found.set(result[0], { ...known, words: known.words + 1 });
      }
    const most = Math.max(...[...found.values()].map((each) => each.words));
    const texts = [...found.values()].filter((each) => each.words >= most - 1);
    texts.forEach((each) => (each.result[4] += 15 * (each.words - words.size)));
    return [...entriesWithin(words), ...texts.map((each) => each.result)];
  };
}

function entriesWithin(words) {
  const stemmer = new Stemmer();
  const { docnames, titles, filenames, indexentries } = Search._index;
  return Object.entries(indexentries).flatMap(([entry, places]) => {
    const own = splitQuery(entry.toLowerCase()).filter((word) => !stopwords.has(word)).map((word) => stemmer.stemWord(word));
    if (!own.length || !own.every((word) => words.has(word))) return [];
    return places.map(([file, id]) => [
      docnames[file], titles[file], id ? "#" + id : "", null, own.length, filenames[file], SearchResultKind.index,
    ]);
  });
}
