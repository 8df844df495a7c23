/** `npm test` is thorough; `npm run check`, which somebody waits for, tries less of the same. */
export const isThorough = process.env.CAISSON_TEST_THOROUGH === "1";

/** How often a test tries what chance gives it, or how much it sends. */
export function tries(thorough: number, quick = Math.ceil(thorough / 10)): number {
  return isThorough ? thorough : quick;
}
