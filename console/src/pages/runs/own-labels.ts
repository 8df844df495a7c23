/** The labels that somebody gave a run, without those by which the station finds it again. */
export const ownLabels = (labels: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(labels).filter(([key]) => !key.startsWith("caisson."));
