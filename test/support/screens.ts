import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect } from "vitest";

/** If set to 1, screens that differ are rewritten instead of failing. Review the difference before you commit it. */
const UPDATES = process.env.UPDATE_SCREENS === "1";

interface Screens {
  /** Returns the text with placeholders. An id has the same one on every screen. */
  steady(text: string): string;
}

/**
 * Replaces what differs between runs and machines in terminal screens: ids, durations, sizes, folders and hashes get
 * placeholders that look like them. Aligns the columns again.
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
      for (const [folder, standIn] of Object.entries(folders)) steady = steady.replaceAll(folder, standIn);
      return laidOut(
        steady
          .replaceAll(/\b(?:run|sb|snap|ask)_[a-z2-7]{12}\b/g, idStandIn)
          .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|min|h)\b/g, "0.1 s")
          .replaceAll(/\b\d+(?:\.\d+)? (?:B|KiB|MiB|GiB)\b/g, "1.0 MiB")
          .replaceAll(/\b\d[\d,]* tokens\b/g, "2,000 tokens")
          // One in a few hundred hashes contains no letter.
          .replaceAll(/\b(?:(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}|\d{12,40})\b/g, "c0ffee0"),
      );
    },
  };
}

/** Fails with the difference if the screen does not match the file. */
export function expectScreen(path: string, screen: string): void {
  if (UPDATES) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, screen);
  }
  const stored = existsSync(path) ? readFileSync(path, "utf8") : "";
  expect(screen, `${path}, which UPDATE_SCREENS=1 rewrites`).toBe(stored);
}

/** Aligns tables, which have a heading in capitals: each column is as wide as its widest cell. */
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
