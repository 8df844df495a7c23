import type { Permission, PermissionPreset, PermissionRules } from "../contract/harness/harness.ts";
import { matchesStars } from "../lib/wildcards.ts";
import { shellCommands } from "./shell-commands.ts";

const fetchers = ["curl", "wget"];
const interpreters = ["sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"];
const fetchAndRun = fetchers.flatMap((fetcher) => interpreters.map((program) => [`bash:${fetcher} | ${program}`, "deny"] as const));

/**
 * The default rules. An agent works in a copy, and a user reviews what it removes or commits there before applying it.
 * What leaves the sandbox needs approval, or is denied if it cannot be undone.
 */
export const defaultPermissions: PermissionRules = {
  "*": "allow",
  ...Object.fromEntries(fetchAndRun),
  "bash:git push --force*": "deny",
  "bash:git push*": "ask",
  "git:push --force*": "deny",
  "git:push*": "ask",
  "request_network:*": "ask",
};

const permissionPresets: Record<PermissionPreset, PermissionRules> = {
  strict: {
    "bash:rm -rf*": "deny",
    "bash:git reset --hard*": "deny",
    "bash:git commit*": "ask",
    "git:reset --hard*": "deny",
    "git:commit*": "ask",
  },
};

/** Returns the rules for a preset name, for rules, or for both; the rules override the preset. */
export function permissionRules(
  permissions: PermissionPreset | PermissionRules | readonly [PermissionPreset, PermissionRules],
): PermissionRules {
  if (typeof permissions === "string") return permissionPresets[permissions];
  return isBoth(permissions) ? { ...permissionPresets[permissions[0]], ...permissions[1] } : permissions;
}

/**
 * Returns the rules of a preset that other rules cannot loosen: all except those that the rules beside the preset
 * override.
 */
export function permissionFloor(
  permissions: PermissionPreset | PermissionRules | readonly [PermissionPreset, PermissionRules],
): PermissionRules {
  if (typeof permissions === "string") return permissionPresets[permissions];
  if (!isBoth(permissions)) return {};
  const [preset, rules] = permissions;
  const isNamed = (pattern: string) => Object.keys(rules).some((own) => matchesStars(pattern, own));
  return Object.fromEntries(Object.entries(permissionPresets[preset]).filter(([pattern]) => !isNamed(pattern)));
}

/** Returns the union of two floors; for a pattern in both, the stricter permission. */
export function joinedFloor(a: PermissionRules, b: PermissionRules): PermissionRules {
  const joined = { ...a };
  for (const [pattern, permission] of Object.entries(b)) {
    const other = joined[pattern];
    if (other === undefined || strictness[permission] > strictness[other]) joined[pattern] = permission;
  }
  return joined;
}

function isBoth(
  permissions: PermissionRules | readonly [PermissionPreset, PermissionRules],
): permissions is readonly [PermissionPreset, PermissionRules] {
  return Array.isArray(permissions);
}

export interface PermissionVerdict {
  permission: Permission;
  /** The rule that decided. An answer `always` remembers it. */
  pattern: string;
}

export interface PermissionOptions {
  /**
   * The agent's own rules. One of them overrides the matching default if it is stricter or its pattern is at least as
   * long.
   */
  own: PermissionRules;
  /** Rules that apply wherever they are stricter than all others. */
  floor?: PermissionRules;
  /** Patterns a person allowed for the rest of the run. */
  always?: ReadonlySet<string>;
  defaults?: PermissionRules;
}

/**
 * Returns the permission of the longest matching pattern, or of the stricter one if two are equally long. `*` matches
 * any characters. A shell line is checked as a whole, by each of its commands and by its pipelines, and the strictest
 * result wins: `cd x && git push` is a push.
 */
export function permissionFor(subject: string, options: PermissionOptions): PermissionVerdict {
  const { subjects, isComplete } = subjectsOf(subject);
  const found = subjects.map((each) => afterAnswers(aboveFloor(each, options), options.always));
  // The list of the line's programs is incomplete, so we ask the user every time.
  if (!isComplete) found.push({ permission: "ask", pattern: subject });
  return found.reduce((strictest, each) => (strictness[each.permission] > strictness[strictest.permission] ? each : strictest));
}

const strictness: Record<Permission, number> = { allow: 0, ask: 1, deny: 2 };

function aboveFloor(subject: string, options: PermissionOptions): PermissionVerdict {
  const found = ruleFor(subject, options);
  const floor = longest(subject, options.floor ?? {});
  return floor && strictness[floor.permission] > strictness[found.permission] ? floor : found;
}

function ruleFor(subject: string, options: PermissionOptions): PermissionVerdict {
  const own = longest(subject, options.own);
  const common = longest(subject, options.defaults ?? defaultPermissions) ?? { permission: "ask", pattern: "" };
  if (!own) return common;
  const stricter = strictness[own.permission] > strictness[common.permission];
  return stricter || own.pattern.length >= common.pattern.length ? own : common;
}

function afterAnswers(verdict: PermissionVerdict, always: ReadonlySet<string> | undefined): PermissionVerdict {
  return verdict.permission === "ask" && always?.has(verdict.pattern) ? { ...verdict, permission: "allow" } : verdict;
}

function longest(subject: string, rules: PermissionRules): PermissionVerdict | null {
  let best: PermissionVerdict | null = null;
  for (const [pattern, permission] of Object.entries(rules)) {
    if (!matchesStars(pattern, subject)) continue;
    const same = pattern.length === best?.pattern.length && strictness[permission] > strictness[best.permission];
    if (best === null || pattern.length > best.pattern.length || same) best = { permission, pattern };
  }
  return best;
}

function subjectsOf(subject: string): { subjects: string[]; isComplete: boolean } {
  if (!subject.startsWith("bash:")) return { subjects: [subject], isComplete: true };
  const { commands, pipelines, isComplete } = shellCommands(subject.slice("bash:".length));
  return { subjects: [subject, ...[...commands, ...pipelines].map((each) => `bash:${each}`)], isComplete };
}
