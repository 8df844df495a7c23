/** Drops a promise's failure, for the reason in `why`, and resolves to undefined instead. */
export function ignore<Value>(promise: Promise<Value>, _why: string): Promise<Value | undefined> {
  return promise.catch(() => undefined);
}

/** Returns whether a promise resolves. Its failure is dropped, for the reason in `why`. */
export function succeeds(promise: Promise<unknown>, _why: string): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}

/** Like `ignore`, for synchronous work. */
export function ignoring<Value>(_why: string, work: () => Value): Value | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** Returns whether a system call failed with one of these codes: `isErrno(error, "ENOENT", "ENOTDIR")`. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** Nothing exists at the path. */
export const ABSENT: readonly string[] = ["ENOENT", "ENOTDIR"];
/** Nothing exists at the path, or this user cannot access it. */
export const UNREACHABLE: readonly string[] = [...ABSENT, "EACCES", "EPERM", "ELOOP", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"];

/** Resolves to `otherwise` if a system call failed with one of these codes. Rethrows any other failure. */
export async function ifErrno<Value, Otherwise>(
  promise: Promise<Value>,
  codes: readonly string[],
  otherwise: Otherwise,
): Promise<Value | Otherwise> {
  return await promise.catch((error: unknown) => {
    if (isErrno(error, ...codes)) return otherwise;
    throw error;
  });
}

/** Like `ifErrno`, for synchronous calls. */
export function ifErrnoSync<Value, Otherwise>(work: () => Value, codes: readonly string[], otherwise: Otherwise): Value | Otherwise {
  try {
    return work();
  } catch (error) {
    if (isErrno(error, ...codes)) return otherwise;
    throw error;
  }
}

/** Parses a JSON text. Returns null if the text is not JSON. */
export function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Decodes percent-encoded text. Returns null if the encoding is malformed. */
export function decodedOrNull(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
