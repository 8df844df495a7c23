/**
 * Converts an error message fragment to a sentence: capitalizes it unless it begins with a name, and adds a full stop.
 * For use between other sentences, as in messages to a model or a program inside.
 */
export function sentence(fragment: string): string {
  const text = /^[a-z]+[ ,;:]/.test(fragment) ? fragment.charAt(0).toUpperCase() + fragment.slice(1) : fragment;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
