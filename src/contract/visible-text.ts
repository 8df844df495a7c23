/**
 * Returns foreign text as one line of printable ASCII, so that a person agrees to exactly what they see: no escape
 * sequences, no changes of text direction, no lookalike letters, no lines that imitate ours. Plain words are unchanged.
 */
export function visible(text: string): string {
  if (/^[!#-[\]-~]([ !#-[\]-~]*[!#-[\]-~])?$/.test(text)) return text;
  return quoteText(text);
}

/** Returns the words of a command with visible boundaries. */
export function visibleWords(words: readonly string[]): string {
  return words.map((word) => (word.includes(" ") || word === "" ? quoteText(word) : visible(word))).join(" ");
}

function quoteText(text: string): string {
  return JSON.stringify(text).replaceAll(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
