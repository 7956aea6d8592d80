// Search results in the order of readers: questions and pages to do things with, then reference, then proofs and logs.
// All but `score` are Sphinx's own weights, which a file for `html_search_scorer` must repeat.
var Scorer = {
  score: ([page, , , , points]) => {
    const steps = [
      [/^docs\/words$/, 12],
      [/^docs\/(mathematics-pages|evidence)\/|^notebooks\/|^benchmarks\/|^[A-Z]+$/, -20],
      [/^docs\/reference\//, -4],
    ];
    const step = steps.find(([pattern]) => pattern.test(page));
    return points + (step ? step[1] : 0);
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
