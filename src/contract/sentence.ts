/**
 * A fragment, as error messages are, made a sentence: a capital unless it begins with a name, and a full stop. For
 * where it stands between sentences, as in what a model or a program inside is told.
 */
export function sentence(fragment: string): string {
  const text = /^[a-z]+[ ,;:]/.test(fragment) ? fragment.charAt(0).toUpperCase() + fragment.slice(1) : fragment;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
