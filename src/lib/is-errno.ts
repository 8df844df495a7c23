/** Whether a call of the system failed with one of these: `isErrno(error, "ENOENT", "ENOTDIR")`. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
