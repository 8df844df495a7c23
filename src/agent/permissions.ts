import type { PermissionPreset, PermissionRules } from "../contract/agent.ts";
import type { Permission } from "../contract/run.ts";
import { matchesStars } from "../lib/wildcards.ts";
import { shellCommands } from "./shell-commands.ts";

const fetchers = ["curl", "wget"];
const interpreters = ["sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"];
const fetchAndRun = fetchers.flatMap((fetcher) => interpreters.map((program) => [`bash:${fetcher} | ${program}`, "deny"] as const));

/**
 * What holds when an agent says nothing. It works in a copy that nobody loses: what it removes or commits there is
 * looked at before it is applied. What leaves the sandbox is asked about, or denied where it could not be undone.
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

/** The rules that are meant by the name of a preset, by rules, or by both, of which the rules win over the preset's. */
export function permissionRules(asked: PermissionPreset | PermissionRules | readonly [PermissionPreset, PermissionRules]): PermissionRules {
  if (typeof asked === "string") return permissionPresets[asked];
  return isBoth(asked) ? { ...permissionPresets[asked[0]], ...asked[1] } : asked;
}

/** What a preset asks for whatever rules are beside it, which may only go over those parts of it that they name. */
export function permissionFloor(asked: PermissionPreset | PermissionRules | readonly [PermissionPreset, PermissionRules]): PermissionRules {
  if (typeof asked === "string") return permissionPresets[asked];
  if (!isBoth(asked)) return {};
  const [preset, rules] = asked;
  const isNamed = (pattern: string) => Object.keys(rules).some((own) => matchesStars(pattern, own));
  return Object.fromEntries(Object.entries(permissionPresets[preset]).filter(([pattern]) => !isNamed(pattern)));
}

/** Both floors at once. */
export function joinedFloor(a: PermissionRules, b: PermissionRules): PermissionRules {
  const joined = { ...a };
  for (const [pattern, permission] of Object.entries(b)) {
    const other = joined[pattern];
    if (other === undefined || strictness[permission] > strictness[other]) joined[pattern] = permission;
  }
  return joined;
}

function isBoth(
  asked: PermissionRules | readonly [PermissionPreset, PermissionRules],
): asked is readonly [PermissionPreset, PermissionRules] {
  return Array.isArray(asked);
}

export interface Verdict {
  permission: Permission;
  /** The rule that decided; what an answer `always` remembers. */
  pattern: string;
}

export interface PermissionOptions {
  /** The agent's own. One that is stricter, or at least as long as the default that matches, goes over it. */
  own: PermissionRules;
  /** What holds where it is stricter than everything else that is found. */
  floor?: PermissionRules;
  /** Patterns a person allowed for the rest of the run. */
  always?: ReadonlySet<string>;
  defaults?: PermissionRules;
}

/**
 * The rule of the longest matching pattern; among equals the stricter one. `*` stands for any characters. A shell line
 * is looked at as a whole, at each of its commands and at what is piped into what, and the strictest finding counts, so
 * that `cd x && git push` is a push.
 */
export function permissionFor(subject: string, options: PermissionOptions): Verdict {
  const { subjects, isComplete } = subjectsOf(subject);
  const found = subjects.map((each) => afterAnswers(aboveFloor(each, options), options.always));
  // The list of its programs is incomplete, so the user is asked every time.
  if (!isComplete) found.push({ permission: "ask", pattern: subject });
  return found.reduce((strictest, each) => (strictness[each.permission] > strictness[strictest.permission] ? each : strictest));
}

const strictness: Record<Permission, number> = { allow: 0, ask: 1, deny: 2 };

function aboveFloor(subject: string, options: PermissionOptions): Verdict {
  const found = ruleFor(subject, options);
  const floor = longest(subject, options.floor ?? {});
  return floor && strictness[floor.permission] > strictness[found.permission] ? floor : found;
}

function ruleFor(subject: string, options: PermissionOptions): Verdict {
  const own = longest(subject, options.own);
  const common = longest(subject, options.defaults ?? defaultPermissions) ?? { permission: "ask", pattern: "" };
  if (!own) return common;
  const stricter = strictness[own.permission] > strictness[common.permission];
  return stricter || own.pattern.length >= common.pattern.length ? own : common;
}

function afterAnswers(verdict: Verdict, always: ReadonlySet<string> | undefined): Verdict {
  return verdict.permission === "ask" && always?.has(verdict.pattern) ? { ...verdict, permission: "allow" } : verdict;
}

function longest(subject: string, rules: PermissionRules): Verdict | null {
  let best: Verdict | null = null;
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
