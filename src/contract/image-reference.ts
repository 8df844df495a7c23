/**
 * `[HOST[:PORT]/]NAME[:TAG][@DIGEST]`, as registries allow it: it can never be taken for an option or a path upwards.
 */
const NAME =
  /^(?:[a-zA-Z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
const REFERENCE_CHARACTERS_MAX = 512;

/** What a reference names: an image of a registry, which includes images built here, or a place on this machine. */
export type ImageReference = { kind: "registry"; reference: string } | { kind: "machine"; place: string };

/**
 * Reads a reference without looking at the disk; runtimes act on the result, and callers are judged by it. What begins
 * with `/` or `.` is a place on this machine, and so is what follows `oci:`, `oci-archive:` and `docker-archive:`.
 * Anything else is a name in a registry, even if the current folder has a file of that name: a clone must not decide
 * what `debian:12` means. Null for what is neither.
 */
export function parseImageReference(text: string): ImageReference | null {
  if (text === "" || text.includes("\0")) return null;
  const [, scheme, rest] = /^(oci|oci-archive|docker-archive|docker):(.+)$/s.exec(text) ?? [];
  if (scheme === "docker" && rest?.startsWith("//")) return registryReference(rest.slice(2));
  if (scheme !== undefined && scheme !== "docker" && rest !== undefined) return { kind: "machine", place: rest };
  return /^[./]/.test(text) ? { kind: "machine", place: text } : registryReference(text);
}

function registryReference(reference: string): ImageReference | null {
  return reference.length <= REFERENCE_CHARACTERS_MAX && NAME.test(reference) ? { kind: "registry", reference } : null;
}
