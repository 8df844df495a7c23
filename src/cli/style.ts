/** Colours for people; nothing for files and pipes. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

export function createStyle(options: { isTerminal: boolean; noColor: boolean }): Style {
  const plain = !options.isTerminal || options.noColor;
  const wrap = (code: number) => (text: string) => (plain ? text : `\x1b[${code}m${text}\x1b[0m`);
  return { bold: wrap(1), dim: wrap(2), good: wrap(32), bad: wrap(31) };
}
