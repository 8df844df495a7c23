import type { Change } from "./change.ts";
import { renderSections } from "./render-diff.ts";

/** Renders a small diff in one piece. */
export function renderDiff(changes: readonly Change[]): Buffer {
  return Buffer.concat([...renderSections(changes)]);
}
