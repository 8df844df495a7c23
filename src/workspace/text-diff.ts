/** A run of lines that are the same, only in the old text, or only in the new. */
export interface Piece {
  sign: " " | "-" | "+";
  lines: string[];
}

/** Past so many differing lines the shortest answer is not looked for any longer: the rest is shown as replaced. */
const DIFFERENCES_MAX = 2000;

/** The shortest way from the old lines to the new ones (Myers), after taking off what they share at both ends. */
export function diffLines(before: readonly string[], after: readonly string[]): Piece[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end])
    end++;
  const middle = shortest(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const pieces: Piece[] = [];
  const push = (sign: Piece["sign"], lines: readonly string[]) => {
    if (lines.length === 0) return;
    const last = pieces.at(-1);
    if (last?.sign === sign) for (const line of lines) last.lines.push(line);
    else pieces.push({ sign, lines: [...lines] });
  };
  push(" ", before.slice(0, start));
  for (const piece of middle) push(piece.sign, piece.lines);
  push(" ", before.slice(before.length - end));
  return pieces;
}

function shortest(a: readonly string[], b: readonly string[]): Piece[] {
  if (a.length === 0) return b.length === 0 ? [] : [{ sign: "+", lines: [...b] }];
  if (b.length === 0) return [{ sign: "-", lines: [...a] }];
  const trace = walk(a, b);
  if (!trace) {
    return [
      { sign: "-", lines: [...a] },
      { sign: "+", lines: [...b] },
    ];
  }
  return backtrack(a, b, trace);
}

/** For each number of differences, how far each diagonal gets. Null when there are too many. */
function walk(a: readonly string[], b: readonly string[]): Int32Array[] | null {
  const max = Math.min(a.length + b.length, DIFFERENCES_MAX);
  const furthest = new Int32Array(2 * max + 3);
  const at = (k: number) => k + max + 1;
  const trace: Int32Array[] = [];
  for (let d = 0; d <= max; d++) {
    trace.push(furthest.slice(at(-d) - 1, at(d) + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest[at(k - 1)] ?? 0) < (furthest[at(k + 1)] ?? 0));
      let x = down ? (furthest[at(k + 1)] ?? 0) : (furthest[at(k - 1)] ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
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
