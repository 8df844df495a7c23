import type { PermissionRules } from "../../contract/agent.ts";
import type { Permission } from "../../contract/run.ts";
import { defaultPermissions } from "../permissions.ts";

const strictness: Record<Permission, number> = { allow: 0, ask: 1, deny: 2 };

/**
 * The rules that could take the place of a stricter default; any other rule leaves what it matches as strict as it was,
 * or makes it stricter.
 */
export function wideningRules(rules: PermissionRules, defaults: PermissionRules = defaultPermissions): [pattern: string, Permission][] {
  return Object.entries(rules).filter(([pattern, permission]) =>
    Object.entries(defaults).some(
      ([common, usual]) =>
        strictness[permission] < strictness[usual] && pattern.length >= common.length && canMatchTheSame(pattern, common),
    ),
  );
}

/** Whether some text matches both patterns, in which `*` stands for any characters. */
export function canMatchTheSame(left: string, right: string): boolean {
  // Which positions in `right` can be reached with what of `left` has been read.
  let reached = new Set(closure(right, [0]));
  for (let index = 0; index < left.length; index++) {
    const character = left[index];
    const next: number[] = [];
    // From the first place on, every place: once, not for each that was reached.
    if (character === "*") for (let to = Math.min(...reached); to <= right.length; to++) next.push(to);
    else
      for (const at of reached) {
        const other = right[at];
        if (other === "*") next.push(at);
        else if (other === character) next.push(at + 1);
      }
    reached = new Set(closure(right, next));
  }
  return reached.has(right.length);
}

/** A `*` may stand for nothing. */
function closure(pattern: string, positions: readonly number[]): number[] {
  const all = new Set(positions);
  for (const at of all) if (pattern[at] === "*") all.add(at + 1);
  return [...all];
}
