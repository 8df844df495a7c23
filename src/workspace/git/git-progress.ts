/** Longer lines are cut: git writes none, and anything else that a server sends is not meant for people. */
const LINE_CHARACTERS_MAX = 4096;

/** The shortest time between two progress reports. */
const TELL_MS = 5_000;

/**
 * Reads git's standard error, split in any way, and reports the useful part: the progress of a long fetch now and then,
 * the final amount received, and warnings. Git itself writes a line for each percent.
 */
export function createGitProgress(tell: (line: string) => void, options: { nowMs?: () => number } = {}): (piece: string) => void {
  const nowMs = options.nowMs ?? (() => performance.now());
  let lastMs = nowMs();
  let rest = "";
  const isWorthTelling = (line: string): boolean => {
    if (line.startsWith("warning:")) return true;
    if (line.endsWith("done.")) return line.startsWith("Receiving objects:");
    return /\d%/.test(line) && nowMs() - lastMs >= TELL_MS;
  };
  return (piece) => {
    const lines = `${rest}${piece}`.split(/[\r\n]+/);
    rest = (lines.pop() ?? "").slice(0, LINE_CHARACTERS_MAX);
    for (const line of lines.map((each) => each.trim()).filter(isWorthTelling)) {
      lastMs = nowMs();
      tell(line);
    }
  };
}
