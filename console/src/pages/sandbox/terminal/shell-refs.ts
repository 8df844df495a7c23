/** Shells of the console are known by what they are called inside. */

const PREFIX = "console-shell-";

export const refOf = (number: number): string => `${PREFIX}${number}`;

/** Null for what is none. */
export function numberOf(ref: string): number | null {
  const digits = ref.startsWith(PREFIX) ? ref.slice(PREFIX.length) : "";
  return /^[1-9][0-9]{0,5}$/.test(digits) ? Number(digits) : null;
}

/** Above all that were there, so that an old one is never taken up by mistake. */
export function nextNumber(refs: readonly string[]): number {
  return Math.max(0, ...refs.map((ref) => numberOf(ref) ?? 0)) + 1;
}
