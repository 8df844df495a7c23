import { CaissonError } from "../contract/error.ts";

export const WORKSPACE = "/workspace";
const PATH_BYTES_MAX = 4_095;

/**
 * A caller's path as the guest gets it: absolute, without `..`, NUL or more bytes than a path may have. A relative one
 * is taken relative to the workspace. Throws `invalid`. Links are the guest's business: it walks the path inside.
 */
export function resolveSandboxPath(path: string): string {
  const problem = problemWith(path);
  if (problem !== null) {
    throw new CaissonError("invalid", `the path ${describe(path)} ${problem}`, {
      hint: `Give a path inside the sandbox, absolute or relative to ${WORKSPACE}, without ".." and of at most 4,095 bytes.`,
    });
  }
  if (path.startsWith("/")) return path;
  const absolute = path === "." ? WORKSPACE : `${WORKSPACE}/${path}`;
  if (Buffer.byteLength(absolute) > PATH_BYTES_MAX) return resolveSandboxPath(absolute);
  return absolute;
}

function problemWith(path: unknown): string | null {
  if (typeof path !== "string") return "is not a string";
  if (path === "") return "is empty";
  if (path.includes("\0")) return "contains NUL";
  if (path.includes("..") && path.split("/").includes("..")) return 'contains ".."';
  if (path.length * 3 > PATH_BYTES_MAX && Buffer.byteLength(path) > PATH_BYTES_MAX) return "is longer than 4,095 bytes";
  if (!path.isWellFormed()) return "is not well-formed Unicode";
  return null;
}

function describe(path: unknown): string {
  const text = JSON.stringify(path) ?? String(path);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
