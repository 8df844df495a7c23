/** Upper limits on what a tool returns to the model. Each tool's description states them. */
export const READ_LINES_MAX = 2000;
export const LINE_CHARACTERS_MAX = 2000;
/** Limit for all lines together: 2,000 long lines would fill a model's context window. */
export const READ_CHARACTERS_MAX = 100_000;
/** How far a file is read just to count its lines. */
export const READ_COUNT_BYTES_MAX = 10 * 1024 * 1024;
export const BASH_CHARACTERS_MAX = 30_000;
export const BASH_TIMEOUT_MS_DEFAULT = 120_000;
export const BASH_TIMEOUT_MS_MAX = 600_000;
/** A command whose output exceeds this size is ended. The whole output is stored in a file inside. */
export const BASH_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
export const GLOB_RESULTS_MAX = 100;
export const GLOB_ENTRIES_MAX = 100_000;
export const GREP_MATCHES_MAX = 100;
export const GREP_FILE_MEGABYTES_MAX = 10;
export const EDIT_BYTES_MAX = 10 * 1024 * 1024;
export const RECALL_MATCHES_MAX = 20;
export const FETCH_BYTES_MAX = 5 * 1024 * 1024;

/** Cuts a text in the middle, where it matters least, and says where to find all of it. */
export function cutMiddle(text: string, options: { charactersMax: number; wholeAt?: string }): { text: string; cut: boolean } {
  if (text.length <= options.charactersMax) return { text, cut: false };
  const half = Math.floor(options.charactersMax / 2);
  const left = text.length - 2 * half;
  const where = options.wholeAt ? `; the full output is in ${options.wholeAt}: read it with an offset, or a column in a long line` : "";
  // The cut may split a surrogate pair, and providers reject a lone surrogate.
  const ends = [text.slice(0, half).toWellFormed(), text.slice(-half).toWellFormed()];
  return { text: `${ends[0]}\n\n[… ${left} characters left out${where} …]\n\n${ends[1]}`, cut: true };
}
