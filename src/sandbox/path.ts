import { CaissonError } from "../contract/error/error.ts";

export const WORKSPACE = "/workspace";
const PATH_BYTES_MAX = 4_095;

/**
 * Converts a caller's path to an absolute one for the guest, without `..` or NUL, and within the length limit. Relative
 * paths are relative to the workspace. Throws `invalid`. Links are left to the guest, which resolves the path inside.
 */
export function resolveSandboxPath(path: string): string {
  const problem = problemWith(path);
  if (problem !== null) {
    throw new CaissonError("invalid", `the path ${describe(path)} ${problem}`, {
      hint: `Pass a path inside the sandbox, absolute or relative to ${WORKSPACE}, without ".." and at most 4,095 bytes long.`,
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
