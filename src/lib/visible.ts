/**
 * A text of somebody else's file as one line of printable ASCII, so that what a person agrees to is what they saw: no
 * escape sequence, no change of direction, no letter that looks like another, no line that pretends to be ours. Plain
 * words stay as they are.
 */
export function visible(text: string): string {
  if (/^[!#-[\]-~]([ !#-[\]-~]*[!#-[\]-~])?$/.test(text)) return text;
  return quoted(text);
}

/** The words of a command, told apart. */
export function visibleWords(words: readonly string[]): string {
  return words.map((word) => (word.includes(" ") || word === "" ? quoted(word) : visible(word))).join(" ");
}

function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
