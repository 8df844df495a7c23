import { CaissonError } from "../contract/error/error.ts";

/** Argument checks that guests and the fake runtime share. All throw `invalid`. */

const ENTRIES_DEFAULT = 10_000;
const ENTRIES_MAX = 100_000;
const DEPTH_MAX = 64;

export function checkListing(options: { depth?: number; entriesMax?: number }): { depth: number; entriesMax: number } {
  const { depth = 1, entriesMax = ENTRIES_DEFAULT } = options;
  checkBetween("depth", depth, 1, DEPTH_MAX);
  checkBetween("entriesMax", entriesMax, 1, ENTRIES_MAX);
  return { depth, entriesMax };
}

export function checkMode(mode: number | undefined): number | undefined {
  if (mode !== undefined) checkBetween("mode", mode, 0, 0o7777);
  return mode;
}

export function checkPort(port: number): void {
  checkBetween("port", port, 1, 65_535);
}

export function checkWhole(name: string, value: number): void {
  checkBetween(name, value, 0, Number.MAX_SAFE_INTEGER);
}

export function checkTerminalSize({ cols, rows }: { cols: number; rows: number }): void {
  for (const value of [cols, rows]) {
    if (!Number.isInteger(value) || value < 1 || value > 65_535) {
      throw new CaissonError("invalid", `invalid terminal size: ${cols} by ${rows}`, { hint: "Pass whole numbers from 1 to 65,535." });
    }
  }
}

function checkBetween(name: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new CaissonError("invalid", `${name} must be a whole number from ${least} to ${most}, not ${value}`);
}
