// Scores from a JSON export of linadd: node score.js model.json < rows.json
const bases = { // values of phi at coordinate u, from index `first` on
  bspline: (u, model, f) => {
    const first = Math.min(Math.floor(u), f.n_bins - 1), t = u - first, s = 1 - t;
    return { first, values: [[1], [s, t], [s * s / 2, 0.5 + t * s, t * t / 2],
      [s ** 3 / 6, (4 - 6 * t * t + 3 * t ** 3) / 6, (4 - 6 * s * s + 3 * s ** 3) / 6, t ** 3 / 6]][model.degree] };
  },
  fourier: (u, { weights }) => ({ first: 0, values: weights.map((w, i) =>
    w * (i % 2 ? Math.cos : Math.sin)(Math.PI * u * ((i >> 1) + 1))) }),
  hermite: (u, { weights }) => {
    const he = [1, u];
    for (let k = 1; k < weights.length; k++) he.push(u * he[k] - k * he[k - 1]);
    return { first: 0, values: weights.map((w, i) => w * he[i + 1]) };
  },
  identity: (u) => ({ first: 0, values: [u] }),
};
function coordinate(x, { origin, inverse, edges }) {
  if (!edges) return (x - origin) * inverse;
  const k = edges.filter((edge) => edge <= x).length - 1;
  if (k > 0 && edges[k - 1] === x) return k - 0.5; // a bin of its own for this value
  return k + (k < edges.length - 1 ? (x - edges[k]) / (edges[k + 1] - edges[k]) : 0);
}
function score(model, row) { // one number for two classes, positive for the second; else one a class
  return model.features.reduce((total, f, j) => {
    const x = Math.min(Math.max(row[j], f.lower ?? -Infinity), f.upper ?? Infinity);
    if (!Number.isFinite(row[j]) || (f.is_strict && x !== row[j])) throw RangeError(`feature ${j + 1}: ${row[j]}`);
    const { first, values } = bases[model.encoder](coordinate(x, f), model, f);
    const slope = row[j] < x ? f.lower_slope : f.upper_slope;
    return total.map((sum, o) => values.reduce((part, phi, i) => part + phi * f.coef[first + i][o], sum)
      + (slope ? (row[j] - x) * slope[o] : 0));
  }, model.intercept);
}
const [rows, model] = [0, process.argv[2]].map((file) => JSON.parse(require("fs").readFileSync(file, "utf8")));
console.log(JSON.stringify(rows.map((row) => score(model, row))));
