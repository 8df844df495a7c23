/** The console recognizes its shells by the refs of their processes. */

const PREFIX = "console-shell-";

export const refOf = (number: number): string => `${PREFIX}${number}`;

/** Returns null for other refs. */
export function numberOf(ref: string): number | null {
  const digits = ref.startsWith(PREFIX) ? ref.slice(PREFIX.length) : "";
  return /^[1-9][0-9]{0,5}$/.test(digits) ? Number(digits) : null;
}

/** Returns a number above all earlier ones, so that a new shell never attaches to an old process. */
export function nextNumber(refs: readonly string[]): number {
  return Math.max(0, ...refs.map((ref) => numberOf(ref) ?? 0)) + 1;
}
