/** A run of lines that are in both texts, only in the old one, or only in the new one. */
export interface Piece {
  sign: " " | "-" | "+";
  lines: string[];
}

/** The search for the shortest edit stops at this many differing lines; the rest is shown as replaced. */
const DIFFERENCES_MAX = 2000;
/** Larger differences are not split into lines, but replaced as a whole. */
const SPLIT_BYTES_MAX = 8 * 1024 * 1024;
/** Limit for all files of a diff, about one or two seconds. The rest is shown as replaced. */
const STEPS_MAX = 200_000_000;
const CONTEXT_LINES = 3;
const NEWLINE = 0x0a;

/** The remaining budget of one diff. */
export interface DiffBudget {
  stepsLeft: number;
}
export const newDiffBudget = (): DiffBudget => ({ stepsLeft: STEPS_MAX });

/** Two texts without their common start and end, except for the lines next to the difference. */
export interface TextDiff {
  /** The number of common lines before `lead`. */
  linesBefore: number;
  lead: string[];
  /** The difference by line; null if it is too large to compare. */
  pieces: Piece[] | null;
  removed: Buffer;
  added: Buffer;
  trail: string[];
}

/** Compares two texts within fixed limits of time and memory. One character of a line stands for one byte. */
export function diffText(before: Buffer, after: Buffer, budget: DiffBudget): TextDiff {
  const start = sharedStart(before, after);
  const end = sharedEnd(before.subarray(start), after.subarray(start));
  const removed = before.subarray(start, before.length - end);
  const added = after.subarray(start, after.length - end);
  const lead = lastLines(before.subarray(0, start));
  const pieces = removed.length + added.length > SPLIT_BYTES_MAX ? null : shortest(splitLines(removed), splitLines(added), budget);
  return {
    linesBefore: countLines(before.subarray(0, start)) - lead.length,
    lead,
    pieces,
    removed,
    added,
    trail: firstLines(before.subarray(before.length - end)),
  };
}

/** Finds the shortest edit from the old lines to the new ones (Myers), after removing their common start and end. */
export function diffLines(before: readonly string[], after: readonly string[], budget: DiffBudget = newDiffBudget()): Piece[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end])
    end++;
  const [a, b] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const pieces: Piece[] = [];
  const push = (sign: Piece["sign"], lines: readonly string[]) => {
    if (lines.length === 0) return;
    const last = pieces.at(-1);
    if (last?.sign === sign) for (const line of lines) last.lines.push(line);
    else pieces.push({ sign, lines: [...lines] });
  };
  push(" ", before.slice(0, start));
  for (const piece of shortest(a, b, budget) ?? replacePieces(a, b)) push(piece.sign, piece.lines);
  push(" ", before.slice(before.length - end));
  return pieces;
}

const replacePieces = (a: string[], b: string[]): Piece[] => [
  { sign: "-", lines: a },
  { sign: "+", lines: b },
];

/** Returns null if the lines differ too much, or the budget is exhausted. */
function shortest(a: string[], b: string[], budget: DiffBudget): Piece[] | null {
  if (a.length === 0) return b.length === 0 ? [] : [{ sign: "+", lines: b }];
  if (b.length === 0) return [{ sign: "-", lines: a }];
  const [x, y, shared] = numberLines(a, b);
  // In any arrangement, the lines that are not shared count as differences.
  if (a.length + b.length - 2 * shared > DIFFERENCES_MAX) return null;
  const trace = walk(x, y, budget);
  return trace && backtrack(a, b, trace);
}

/** Maps equal lines to equal numbers, and counts the lines that both texts share. */
function numberLines(a: readonly string[], b: readonly string[]): [Int32Array, Int32Array, number] {
  const numbers = new Map<string, number>();
  const left: number[] = [];
  const numberOf = (line: string) => {
    const known = numbers.get(line) ?? numbers.size;
    numbers.set(line, known);
    return known;
  };
  const x = Int32Array.from(a, numberOf);
  for (const number of x) left[number] = (left[number] ?? 0) + 1;
  const y = Int32Array.from(b, numberOf);
  let shared = 0;
  for (const number of y) {
    const count = left[number] ?? 0;
    if (count > 0) shared += 1;
    left[number] = count - 1;
  }
  return [x, y, shared];
}

/** Computes how far each diagonal gets, for each number of differences. Returns null if there are too many. */
function walk(a: Int32Array, b: Int32Array, budget: DiffBudget): Int32Array[] | null {
  const max = Math.min(a.length + b.length, DIFFERENCES_MAX);
  const furthest = new Int32Array(2 * max + 3);
  const at = (k: number) => k + max + 1;
  const trace: Int32Array[] = [];
  for (let d = 0; d <= max && budget.stepsLeft > 0; d++) {
    trace.push(furthest.slice(at(-d) - 1, at(d) + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest[at(k - 1)] ?? 0) < (furthest[at(k + 1)] ?? 0));
      const from = down ? (furthest[at(k + 1)] ?? 0) : (furthest[at(k - 1)] ?? 0) + 1;
      let x = from;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      budget.stepsLeft -= 1 + x - from;
      furthest[at(k)] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
  }
  return null;
}

function backtrack(a: readonly string[], b: readonly string[], trace: readonly Int32Array[]): Piece[] {
  const steps: { sign: Piece["sign"]; line: string }[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d];
    if (!furthest) break;
    const at = (k: number) => furthest[k + d + 1] ?? 0;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const previousK = down ? k + 1 : k - 1;
    const previousX = d === 0 ? 0 : at(previousK);
    const previousY = d === 0 ? 0 : previousX - previousK;
    while (x > previousX && y > previousY) {
      x -= 1;
      y -= 1;
      steps.push({ sign: " ", line: a[x] ?? "" });
    }
    if (d === 0) break;
    if (down) {
      y -= 1;
      steps.push({ sign: "+", line: b[y] ?? "" });
    } else {
      x -= 1;
      steps.push({ sign: "-", line: a[x] ?? "" });
    }
  }
  const pieces: Piece[] = [];
  for (const step of steps.reverse()) {
    const last = pieces.at(-1);
    if (last?.sign === step.sign) last.lines.push(step.line);
    else pieces.push({ sign: step.sign, lines: [step.line] });
  }
  return pieces;
}

/** Returns how many bytes two texts share at their start, in whole lines. */
function sharedStart(a: Buffer, b: Buffer): number {
  const shared = sharedBytes(Math.min(a.length, b.length), (from, to) => a.compare(b, from, to, from, to) === 0);
  if (shared === a.length && shared === b.length) return shared;
  return shared === 0 ? 0 : a.lastIndexOf(NEWLINE, shared - 1) + 1;
}

function sharedEnd(a: Buffer, b: Buffer): number {
  const isSame = (from: number, to: number) => a.compare(b, b.length - to, b.length - from, a.length - to, a.length - from) === 0;
  const shared = sharedBytes(Math.min(a.length, b.length), isSame);
  const isLineStart = (text: Buffer) => text.length === shared || text[text.length - shared - 1] === NEWLINE;
  if (shared === 0 || (isLineStart(a) && isLineStart(b))) return shared;
  const next = a.indexOf(NEWLINE, a.length - shared);
  return next < 0 ? 0 : a.length - next - 1;
}

/** Finds the longest common stretch by bisection. */
function sharedBytes(max: number, isSame: (from: number, to: number) => boolean): number {
  let known = 0;
  for (let step = max; step > 0; ) {
    if (known + step <= max && isSame(known, known + step)) known += step;
    else step = Math.floor(step / 2);
  }
  return known;
}

function splitLines(content: Buffer): string[] {
  return content.toString("latin1").match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function lastLines(content: Buffer): string[] {
  let from = content.length;
  for (let count = 0; count < CONTEXT_LINES && from > 0; count++) from = from < 2 ? 0 : content.lastIndexOf(NEWLINE, from - 2) + 1;
  return splitLines(content.subarray(from));
}

function firstLines(content: Buffer): string[] {
  let to = 0;
  for (let count = 0; count < CONTEXT_LINES && to < content.length; count++) {
    const next = content.indexOf(NEWLINE, to);
    to = next < 0 ? content.length : next + 1;
  }
  return splitLines(content.subarray(0, to));
}

/** Counts the lines, including a last one without a line break. */
export function countLines(content: Buffer): number {
  let count = content.length > 0 && content.at(-1) !== NEWLINE ? 1 : 0;
  for (let at = content.indexOf(NEWLINE); at >= 0; at = content.indexOf(NEWLINE, at + 1)) count++;
  return count;
}
