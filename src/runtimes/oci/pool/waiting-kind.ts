import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { unsetFields } from "../../../contract/sandbox/sandbox-field-options.ts";
import type { SandboxField } from "../../../contract/sandbox/sandbox-fields.ts";
import { changedFields } from "../../../sandbox/sandbox-config.ts";
import { writesToHost } from "../../../sandbox/shared-folders.ts";
import { isTransparent } from "../launch/transparent.ts";

/**
 * When each field takes effect: `start` for what the guest and the mounts of its OCI runtime depend on, which cannot be
 * changed after the start; `claim` for everything that a waiting sandbox gets with its user. A config that uses another
 * field gets a new sandbox.
 */
const effects = {
  limits: "claim",
  allowRoot: "start",
  env: "claim",
  network: "claim",
  secrets: "claim",
  gateway: "claim",
  stationAccess: "claim",
  mounts: "claim",
  readOnlyPaths: "claim",
  deniedPaths: "claim",
  tmpBytes: "start",
  shmBytes: "start",
} as const satisfies Partial<Record<SandboxField, "start" | "claim">>;
type StartField = { [Name in keyof typeof effects]: (typeof effects)[Name] extends "start" ? Name : never }[keyof typeof effects];

/** What must be the same in a waiting sandbox and a config that it serves. */
export type WaitingKind = Pick<SandboxConfig, StartField> & { transparent: boolean };

/** How many of the newest requests decide what waits. */
const REQUESTS_MAX = 16;
/** How much less a request counts than the next newer one. */
const AGING = 0.8;
/** How much more than a waiting sandbox another kind must be wanted to take its place. */
const CHANGE_FACTOR = 1.5;

/** Returns the kind of sandbox that can serve a config, or null if only a new one can. */
export function kindOf(config: SandboxConfig): WaitingKind | null {
  // A sandbox that writes to a host folder has a different filter, and one with a disk limit does not guard the host's.
  if (writesToHost(config) || config.limits.diskBytes !== undefined) return null;
  if (changedFields(config, unsetFields()).some((name) => !Object.hasOwn(effects, name))) return null;
  const fixed = Object.entries(config).filter(
    ([name]) => Object.hasOwn(effects, name) && effects[name as keyof typeof effects] === "start",
  );
  return { ...(Object.fromEntries(fixed) as Pick<SandboxConfig, StartField>), transparent: isTransparent(config.network) };
}

/** Returns the config with which a sandbox of a kind waits. Its network is only about what the launcher prepares. */
export function configOfKind({ transparent, ...fields }: WaitingKind): SandboxConfig {
  return SandboxConfig.parse({ ...fields, ...(transparent ? { network: { mode: "open", transparent } } : {}) });
}

export const usualKind = (): WaitingKind => kindOf(SandboxConfig.parse({})) as WaitingKind;

const keyOf = (kind: WaitingKind) => JSON.stringify(Object.entries(kind).sort(([a], [b]) => (a < b ? -1 : 1)));

export const isSameKind = (a: WaitingKind, b: WaitingKind) => keyOf(a) === keyOf(b);

/** Chooses what waits by the newest requests. */
export interface KindChoice {
  note(kind: WaitingKind): void;
  /** Returns the kinds of which `count` waiting sandboxes should be, most wanted first, given those that wait now. */
  wanted(count: number, waiting: readonly WaitingKind[]): WaitingKind[];
}

/** Before the first request, the usual kind is wanted. */
export function createKindChoice(usual: WaitingKind): KindChoice {
  const requests = [usual];
  return {
    note(kind) {
      requests.unshift(kind);
      requests.length = Math.min(requests.length, REQUESTS_MAX);
    },
    wanted(count, waiting) {
      const shares = new Map<string, { kind: WaitingKind; weight: number; places: number; waiting: number }>();
      for (const [age, kind] of requests.entries()) {
        const has = waiting.filter((each) => isSameKind(each, kind)).length;
        const share = shares.get(keyOf(kind)) ?? { kind, weight: 0, places: 0, waiting: has };
        shares.set(keyOf(kind), { ...share, weight: share.weight + AGING ** age });
      }
      const demand = ({ weight, places, waiting: has }: { weight: number; places: number; waiting: number }) =>
        (weight / (places + 1)) * (places < has ? CHANGE_FACTOR : 1);
      const all = [...shares.values()];
      return Array.from({ length: count }, (_, place) => {
        // If there is room for several, the kind of the latest request has one.
        const latest = place === 1 ? all.find(({ places }, index) => index === 0 && places === 0) : undefined;
        const next = latest ?? all.reduce((most, share) => (demand(share) > demand(most) ? share : most));
        next.places += 1;
        return next.kind;
      });
    },
  };
}
