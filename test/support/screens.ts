import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect } from "vitest";

/** Set to 1: screens that differ are written anew in place of failing. Look at the difference before you commit it. */
const UPDATES = process.env.UPDATE_SCREENS === "1";

interface Screens {
  /** The same text with stand-ins: an id has the same one on every screen. */
  steady(text: string): string;
}

/**
 * Screens of a terminal without what differs from one time to the next and from one machine to another: ids, durations,
 * sizes, folders and hashes have a stand-in each that looks like one. Columns are laid out again.
 */
export function createScreens(folders: Readonly<Record<string, string>>): Screens {
  const standIns = new Map<string, string>();
  const idStandIn = (id: string): string => {
    const kind = id.slice(0, id.indexOf("_") + 1);
    const number = [...standIns.keys()].filter((each) => each.startsWith(kind)).length;
    const known = standIns.get(id) ?? `${kind}${String.fromCharCode("a".charCodeAt(0) + number)}${"7k2mq4wz5xt"}`;
    standIns.set(id, known);
    return known;
  };
  return {
    steady(text) {
      let steady = text;
      for (const [folder, shown] of Object.entries(folders)) steady = steady.replaceAll(folder, shown);
      return laidOut(
        steady
          .replaceAll(/\b(?:run|sb|snap|ask)_[a-z2-7]{12}\b/g, idStandIn)
          .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|min|h)\b/g, "0.1 s")
          .replaceAll(/\b\d+(?:\.\d+)? (?:B|KiB|MiB|GiB)\b/g, "1.0 MiB")
          .replaceAll(/\b\d[\d,]* tokens\b/g, "2,000 tokens")
          // One of some hundreds has no letter.
          .replaceAll(/\b(?:(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}|\d{12,40})\b/g, "c0ffee0"),
      );
    },
  };
}

/** Fails with the difference where the screen is not the one in the file. */
export function expectScreen(path: string, screen: string): void {
  if (UPDATES) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, screen);
  }
  const stored = existsSync(path) ? readFileSync(path, "utf8") : "";
  expect(screen, `${path}, which UPDATE_SCREENS=1 writes anew`).toBe(stored);
}

/** Tables have a heading in capitals; each column is as wide as its widest cell needs. */
function laidOut(text: string): string {
  const lines = text.split("\n");
  const isHeading = (line: string) => /^[A-Z]+(?: {2,}[A-Z]+)+$/.test(line);
  for (let first = 0; first < lines.length; first++) {
    if (!isHeading(lines[first] ?? "")) continue;
    let end = first + 1;
    while (end < lines.length && / {2,}/.test(lines[end] ?? "")) end++;
    const rows = lines.slice(first, end).map((line) => line.trimEnd().split(/ {2,}/));
    const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
    lines.splice(
      first,
      end - first,
      ...rows.map((row) =>
        row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join("  ")
          .trimEnd(),
      ),
    );
    first = end - 1;
  }
  return lines.join("\n");
}
