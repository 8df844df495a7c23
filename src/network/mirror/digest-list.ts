import type { Digest } from "./resource.ts";

const strength = ["sha1", "sha256", "sha384", "sha512"] as const;
const hexLengths = { sha1: 40, sha256: 64, sha384: 96, sha512: 128 };

/** Writes one file per line: path and digest. The list is stored behind the page that it comes from. */
export function encodeDigests(digests: Iterable<readonly [path: string, digest: Digest]>): Buffer {
  const lines: string[] = [];
  for (const [path, digest] of digests) if (!/[\s]/.test(path)) lines.push(`${path} ${digest}\n`);
  return Buffer.from(lines.join(""));
}

export function digestIn(list: string, path: string): Digest | null {
  const start = list.startsWith(`${path} `) ? 0 : list.indexOf(`\n${path} `) + 1;
  if (start === 0 && !list.startsWith(`${path} `)) return null;
  return list.slice(start + path.length + 1, list.indexOf("\n", start)) as Digest;
}

/** Returns null if this is not a digest of a known kind. */
export function hexDigest(algorithm: string, hex: string): Digest | null {
  const known = strength.find((name) => name === algorithm);
  return known !== undefined && new RegExp(`^[0-9a-f]{${hexLengths[known]}}$`, "i").test(hex) ? `${known}:${hex.toLowerCase()}` : null;
}

/** Returns the strongest digest in a subresource-integrity text such as `sha512-…= sha1-…=`. */
export function integrityDigest(integrity: string): Digest | null {
  const found = integrity.split(/\s+/).flatMap((part) => {
    const [, algorithm, base64] = /^(sha\d+)-([A-Za-z0-9+/]+=*)/.exec(part) ?? [];
    const digest =
      algorithm === undefined || base64 === undefined ? null : hexDigest(algorithm, Buffer.from(base64, "base64").toString("hex"));
    return digest === null ? [] : [digest];
  });
  const rank = (digest: Digest) => strength.indexOf(digest.split(":")[0] as (typeof strength)[number]);
  return found.toSorted((a, b) => rank(b) - rank(a))[0] ?? null;
}
