/** True in `npm test`. `npm run check`, for which a person waits, tries less. */
export const isThorough = process.env.CAISSON_TEST_THOROUGH === "1";

/** Returns how often a test tries random inputs, or how much it sends. */
export function tries(thorough: number, quick = Math.ceil(thorough / 10)): number {
  return isThorough ? thorough : quick;
}
