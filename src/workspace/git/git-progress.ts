/** A line that is longer is cut: git writes none, and what else a server sends is not for people. */
const LINE_CHARACTERS_MAX = 4096;

/** What git says while it works is told this often at most. */
const TELL_MS = 5_000;

/**
 * Takes what git writes to standard error, in whatever pieces, and tells what people want to know of it: how far a long
 * fetch is, now and then, what was received in the end, and warnings. Git itself writes a line for each percent.
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
