/**
 * Whether a name fits a pattern in which `*` stands for any characters. Takes time in proportion to the name: patterns
 * and names may both be hostile.
 */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pattern === name;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
