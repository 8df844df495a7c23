/** Uses a loop: a regular expression for trailing slashes takes quadratic time on long runs of slashes. */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
