/** What a tool gives the model at most. Each is told to the model in the tool's description. */
export const READ_LINES_MAX = 2000;
export const LINE_CHARACTERS_MAX = 2000;
/** A longer file is read piece by piece, with an offset. */
export const READ_BYTES_MAX = 10 * 1024 * 1024;
export const BASH_CHARACTERS_MAX = 30_000;
export const BASH_TIMEOUT_MS_DEFAULT = 120_000;
export const BASH_TIMEOUT_MS_MAX = 600_000;
/** What a command may write before it is ended. All of it is kept in a file inside. */
export const BASH_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
export const GLOB_RESULTS_MAX = 100;
export const GLOB_ENTRIES_MAX = 100_000;
export const GREP_MATCHES_MAX = 100;
export const GREP_FILE_MEGABYTES_MAX = 10;
export const EDIT_BYTES_MAX = 10 * 1024 * 1024;

/** Cuts a text in its middle, where it matters least, and says where the whole is. */
export function cutMiddle(text: string, options: { charactersMax: number; wholeAt?: string }): { text: string; cut: boolean } {
  if (text.length <= options.charactersMax) return { text, cut: false };
  const half = Math.floor(options.charactersMax / 2);
  const left = text.length - 2 * half;
  const where = options.wholeAt ? `; the whole is in ${options.wholeAt}, read it with an offset` : "";
  return { text: `${text.slice(0, half)}\n\n[… ${left} characters left out${where} …]\n\n${text.slice(-half)}`, cut: true };
}
