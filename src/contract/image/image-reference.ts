/**
 * `[HOST[:PORT]/]NAME[:TAG][@DIGEST]`, as registries allow it. It can never be an option or a path to a parent folder.
 */
const NAME =
  /^(?:[a-zA-Z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
const REFERENCE_CHARACTERS_MAX = 512;

/** The kind of a reference: an image of a registry, which includes images built here, or a path on this machine. */
export type ImageReference = { kind: "registry"; reference: string } | { kind: "machine"; place: string };

/**
 * Parses a reference without accessing the disk. Runtimes act on the result, and the checks on callers use it too. A
 * reference that begins with `/`, `.`, `oci:`, `oci-archive:` or `docker-archive:` is a path on this machine. Anything
 * else is a registry reference, even if the current folder has a file of that name: a cloned repository must not decide
 * what `debian:12` means. Returns null if it is neither.
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
