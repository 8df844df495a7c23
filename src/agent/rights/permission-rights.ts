import type { Permission, PermissionRules } from "../../contract/harness/harness.ts";
import { defaultPermissions } from "../permissions.ts";

const strictness: Record<Permission, number> = { allow: 0, ask: 1, deny: 2 };

/** Returns the rules that could override a stricter default. No other rule makes anything less strict. */
export function wideningRules(rules: PermissionRules, defaults: PermissionRules = defaultPermissions): [pattern: string, Permission][] {
  return Object.entries(rules).filter(([pattern, permission]) =>
    Object.entries(defaults).some(
      ([common, usual]) =>
        strictness[permission] < strictness[usual] && pattern.length >= common.length && canMatchTheSame(pattern, common),
    ),
  );
}

/** Returns whether some text matches both patterns. `*` matches any characters. */
export function canMatchTheSame(left: string, right: string): boolean {
  // The positions in `right` up to which the part of `left` read so far can match.
  let reached = new Set(closure(right, [0]));
  for (let index = 0; index < left.length; index++) {
    const character = left[index];
    const next: number[] = [];
    // A `*` reaches the first of these positions and all after it. We add each of them once, not once per reached
    // position.
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

/** A `*` may match the empty string. */
function closure(pattern: string, positions: readonly number[]): number[] {
  const all = new Set(positions);
  for (const at of all) if (pattern[at] === "*") all.add(at + 1);
  return [...all];
}
