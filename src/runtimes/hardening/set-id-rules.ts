import { maskedEqual } from "./argument-rules.ts";
import type { SeccompArgument, SeccompRule } from "./seccomp.ts";

const EPERM = 1;
const SET_USER_ID = 0o4000;
const SET_GROUP_ID = 0o2000;
const SET_ID = SET_USER_ID | SET_GROUP_ID;
/** O_CREAT and O_TMPFILE. Without them an open has no mode, and its argument can hold anything. */
const CREATING = 0o20_000_100;

/**
 * Calls that can set a file's mode: the index of the mode argument, and of the flags that decide whether it is used.
 */
const modeCalls: Readonly<Record<string, { mode: number; flags?: number }>> = {
  chmod: { mode: 1 },
  fchmod: { mode: 1 },
  fchmodat: { mode: 2 },
  fchmodat2: { mode: 2 },
  creat: { mode: 1 },
  mknod: { mode: 1 },
  mknodat: { mode: 2 },
  open: { mode: 2, flags: 1 },
  openat: { mode: 3, flags: 2 },
};
/** Its mode is in memory, which a filter cannot read. On ENOSYS, programs fall back to `openat`. */
const hiddenMode = "openat2";

/**
 * Replaces a rule with ones that keep code inside from creating set-user-id and set-group-id files: in a host folder,
 * such a file would take effect on the host. A rule that already checks the mode, as mknod's does, checks these bits as
 * well.
 */
export function withoutSetId(rule: SeccompRule): SeccompRule[] {
  if (rule.action !== "SCMP_ACT_ALLOW") return [rule];
  const others = rule.names.filter((name) => modeCalls[name] === undefined && name !== hiddenMode);
  return [...(others.length === 0 ? [] : [{ ...rule, names: others }]), ...rule.names.flatMap((name) => plainModes(rule, name))];
}

/** Returns the refusals that match `withoutSetId`, for calls that can be refused by their mode alone. */
export function setIdRefusals(names: readonly string[]): SeccompRule[] {
  return names.flatMap((name) => {
    const call = modeCalls[name];
    // An open that creates nothing passes with any mode, so it cannot be refused by the mode alone; the default refuses
    // it.
    if (call === undefined || call.flags !== undefined) return [];
    return [SET_USER_ID, SET_GROUP_ID].map((bit) => ({
      names: [name],
      action: "SCMP_ACT_ERRNO" as const,
      errnoRet: EPERM,
      args: [maskedEqual(call.mode, bit, bit)],
    }));
  });
}

function plainModes(rule: SeccompRule, name: string): SeccompRule[] {
  const call = modeCalls[name];
  if (call === undefined) return [];
  const allow = (args: SeccompArgument[]): SeccompRule => ({ names: [name], action: "SCMP_ACT_ALLOW", args });
  if (rule.args !== undefined) return [allow(rule.args.map((arg) => (arg.index === call.mode ? alsoMasked(arg) : arg)))];
  return [allow([maskedEqual(call.mode, SET_ID, 0)]), ...(call.flags === undefined ? [] : [allow([maskedEqual(call.flags, CREATING, 0)])])];
}

function alsoMasked(arg: SeccompArgument): SeccompArgument {
  if (arg.op !== "SCMP_CMP_MASKED_EQ") throw new Error(`a mode compared by ${arg.op} cannot be narrowed`);
  return { ...arg, value: arg.value | SET_ID };
}
