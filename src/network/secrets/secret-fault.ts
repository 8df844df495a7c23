const VALUE_CHARS_MIN = 8;
const VALUE_CHARS_MAX = 8192;

/** Returns why a text cannot be a secret in a header, or null if it can. */
export function secretFault(value: string): string | null {
  if (value === "") return "its value is empty";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters.
  if (/[\u0000-\u001f\u007f]/.test(value)) return "its value has line breaks or control characters";
  if (!/^[\u0020-\u007e]*$/.test(value)) return "its value has characters other than ASCII";
  if (value.length < VALUE_CHARS_MIN) return `its value has fewer than ${VALUE_CHARS_MIN} characters`;
  if (value.length > VALUE_CHARS_MAX) return `its value has more than ${VALUE_CHARS_MAX} characters`;
  if (value !== value.trim()) return "its value begins or ends with a space";
  return null;
}
