import type { Change, LeftOut } from "../change.ts";
import { whyHeldBack } from "../protected-files.ts";
import { forbidden } from "../protected-path.ts";

/**
 * Selects the changes that may be part of a commit: not git's own files and, unless requested, not files that tools
 * outside act on.
 */
export function committable(
  changes: readonly Change[],
  { includeConfiguration = false }: { includeConfiguration?: boolean | undefined },
): { usable: Change[]; skipped: LeftOut[] } {
  const skipped: LeftOut[] = [];
  const why = (path: string) => {
    const held = includeConfiguration ? null : whyHeldBack(path);
    return forbidden(path) ?? (held === null ? null : `${held}; pass --include-config to include it`);
  };
  const usable = changes.filter((change) => {
    const reason = why(change.path) ?? (change.from === null ? null : why(change.from));
    if (reason !== null) skipped.push({ path: change.path, reason });
    return reason === null;
  });
  return { usable, skipped };
}
