import { type Change, isText } from "./change.ts";
import { hashLines, type LineHashes, similarity } from "./line-hashes.ts";
import { blobOf } from "./render-diff.ts";

/** The share of lines that both files of a rename must have in common. */
const SIMILARITY_MIN = 0.5;
/** Beyond this many pairs, bytes to split or lines to compare, only identical files count as renames. */
const PAIRS_MAX = 10_000;
const BYTES_MAX = 64 * 1024 * 1024;
const LINES_COMPARED_MAX = 50_000_000;

/** Pairs removed files with similar added files as renames. */
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
  if (free.size * rest.length <= PAIRS_MAX) pairSimilar(rest, free, pair);
  const pairedSources = new Set(sources.values());
  return changes.filter((change) => !pairedSources.has(change)).map((change) => addSource(change, sources.get(change)));
}

function addSource(target: Change, source: Change | undefined): Change {
  if (!source) return target;
  return { ...target, from: source.path, before: source.before, changedOutside: source.changedOutside || target.changedOutside };
}

const nameOf = (change: Change) => change.path.slice(change.path.lastIndexOf("/") + 1);

function pairSimilar(targets: readonly Change[], sources: ReadonlySet<Change>, pair: (target: Change, source: Change) => void): void {
  const contentOf = (change: Change) => (change.after ?? change.before)?.content ?? Buffer.alloc(0);
  const texts = [...targets, ...sources].filter((change) => isText(contentOf(change)));
  if (texts.reduce((sum, change) => sum + contentOf(change).length, 0) > BYTES_MAX) return;
  const hashes = new Map<Change, LineHashes>(texts.map((change) => [change, hashLines(contentOf(change))]));
  const budget = { linesLeft: LINES_COMPARED_MAX };
  for (const target of targets) {
    const source = mostSimilar(target, sources, { hashes, budget });
    if (source) pair(target, source);
  }
}

function mostSimilar(
  target: Change,
  sources: ReadonlySet<Change>,
  { hashes, budget }: { hashes: ReadonlyMap<Change, LineHashes>; budget: { linesLeft: number } },
): Change | undefined {
  let best: Change | undefined;
  let bestScore = SIMILARITY_MIN;
  const lines = hashes.get(target);
  for (const source of lines ? sources : []) {
    const others = hashes.get(source);
    // The shorter file bounds the number of shared lines.
    if (!lines || !others || Math.min(lines.length, others.length) <= bestScore * Math.max(lines.length, others.length)) continue;
    budget.linesLeft -= lines.length + others.length;
    if (budget.linesLeft < 0) break;
    const score = similarity(lines, others);
    if (score > bestScore) {
      best = source;
      bestScore = score;
    }
  }
  return best;
}
