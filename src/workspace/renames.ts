import { type Change, isText } from "./change.ts";
import { blobOf, similarityOf } from "./render-diff.ts";

/** Files of a rename share at least this part of their lines. */
const SIMILARITY_MIN = 0.5;
/** Beyond so many pairs only files that are the same are looked for. */
const PAIRS_MAX = 10_000;

/** A file that went and a like one that came are one file that moved. */
export function pairRenames(changes: readonly Change[]): Change[] {
  const removed = changes.filter((change) => change.after === null && change.before?.kind === "file" && change.before.content.length > 0);
  const added = changes.filter((change) => change.before === null && change.after?.kind === "file" && change.after.content.length > 0);
  const sources = new Map<Change, Change>();
  const free = new Set(removed);
  const pair = (target: Change, source: Change | undefined) => {
    if (!source) return;
    free.delete(source);
    sources.set(target, source);
  };
  const byContent = Map.groupBy(removed, (change) => blobOf(change.before?.content ?? Buffer.alloc(0)));
  for (const target of added) {
    const same = byContent.get(blobOf(target.after?.content ?? Buffer.alloc(0)))?.filter((source) => free.has(source)) ?? [];
    pair(target, same.find((source) => nameOf(source) === nameOf(target)) ?? same[0]);
  }
  const rest = added.filter((target) => !sources.has(target));
  if (free.size * rest.length <= PAIRS_MAX) for (const target of rest) pair(target, mostSimilar(target, free));
  const gone = new Set(sources.values());
  return changes.filter((change) => !gone.has(change)).map((change) => renamed(change, sources.get(change)));
}

function renamed(target: Change, source: Change | undefined): Change {
  if (!source) return target;
  return { ...target, from: source.path, before: source.before, changedOutside: source.changedOutside || target.changedOutside };
}

const nameOf = (change: Change) => change.path.slice(change.path.lastIndexOf("/") + 1);

function mostSimilar(target: Change, sources: ReadonlySet<Change>): Change | undefined {
  let best: Change | undefined;
  let bestScore = SIMILARITY_MIN;
  if (!target.after || !isText(target.after.content)) return undefined;
  for (const source of sources) {
    if (!source.before || !isText(source.before.content)) continue;
    // Sizes that differ this much cannot share enough lines to be worth counting them.
    const sizes = [source.before.content.length, target.after.content.length];
    if (Math.min(...sizes) * 10 < Math.max(...sizes)) continue;
    const score = similarityOf(source.before.content, target.after.content);
    if (score > bestScore) {
      best = source;
      bestScore = score;
    }
  }
  return best;
}
