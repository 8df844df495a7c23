import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, dirname } from "node:path";
import type { RuntimeContext } from "../../sandbox/runtime.ts";
import { createStore, type Store } from "../../sandbox/store.ts";
import { CGROUP_NAME } from "./cgroups/cgroup.ts";
import { createQuickMigration, type QuickMigration } from "./cgroups/cgroup-migration.ts";
import { type CgroupParents, cgroupParents, readLayout } from "./cgroups/cgroup-parents.ts";
import type { Basis } from "./details.ts";
import { chosenOciRuntime, findOciRuntimes, findProgram, type OciBinary } from "./discover.ts";
import { type LimitAbility, limitAbility } from "./enforced-limits.ts";
import { findIdentity, type Identity } from "./identity/identity.ts";
import { type HardLimits, parseHardLimits } from "./launch/bundle.ts";
import { createLauncher, type Launch } from "./launch/launcher.ts";
import { findUserSystemd, type UserSession } from "./systemd/user-systemd.ts";
import type { FetchImageFor } from "./template/registry.ts";

export interface OciOptions {
  /** The user's home folder and PATH, in which toolchains are looked up. */
  home: string;
  path: string;
  /** The OCI runtime to use, by name or path. By default, the best one that works. */
  ociRuntime?: string;
  /** The path of CRIU. By default, the one on PATH. */
  criu?: string;
  /** The user's session, through which their own systemd can be asked for control groups. */
  session?: UserSession;
  /** This program's command line, for hints that suggest another one. */
  command?: string;
  /** If absent, images are fetched only for the user of this machine. */
  fetchImageFor?: FetchImageFor;
  /** How many sandboxes and network namespaces to keep ready. None by default. */
  pool?: { sandboxes?: number; networkNamespaces?: number };
}

/** What all sandboxes of one runtime object share. Each lookup happens once, when it is first needed. */
export interface OciContext {
  readonly context: RuntimeContext;
  readonly options: OciOptions;
  readonly store: Store;
  readonly launch: Launch;
  readonly arch: string;
  /** Throws `unavailable`. */
  identity(): Identity;
  cgroups(): CgroupParents;
  /** Stops asking the user's systemd for groups. Messages about missing limits then include the reason. */
  doWithoutScopes(reason: string): void;
  readonly migration: QuickMigration;
  /** The name of our folder in each hierarchy, which differs between state folders. */
  readonly cgroupName: string;
  ability(): LimitAbility;
  /**
   * In order of preference, beginning with the one that worked last. Throws `unavailable` if no runtime is installed.
   */
  binaries(): OciBinary[];
  prefer(binary: OciBinary): void;
  hardLimits(): HardLimits;
  /** The path of CRIU, or null without it or root. */
  criu(): string | null;
  /** The path of mkfs.ext4, or null. */
  mkfs(): string | null;
  /** Recently computed bases. */
  readonly bases: Map<string, { atMs: number; basis: Basis }>;
}

export function createOciContext(context: RuntimeContext, options: OciOptions): OciContext {
  const once = <T>(make: () => T) => {
    let memo: { value: T } | undefined;
    return () => {
      memo ??= { value: make() };
      return memo.value;
    };
  };
  const identity = once(() => findIdentity({ stateDir: context.stateDir, path: options.path }));
  let groups: CgroupParents | undefined;
  let ability: LimitAbility | undefined;
  let silent: string | null = null;
  const cgroups = () => (groups ??= findParents(options, silent));
  const mkfs = once(() => findProgram("mkfs.ext4", options.path));
  let known: OciBinary[] | undefined;
  return {
    context,
    options,
    store: createStore({ stateDir: context.stateDir }),
    launch: createLauncher({ guestPath: context.guestPath, path: options.path }),
    arch: process.arch,
    identity,
    cgroups,
    migration: createQuickMigration(),
    cgroupName: `${CGROUP_NAME}-${createHash("sha256").update(context.stateDir).digest("hex").slice(0, 8)}`,
    ability: () => (ability ??= limitAbility({ cgroups: cgroups(), rootless: process.getuid?.() !== 0, mkfs: mkfs() })),
    doWithoutScopes(reason) {
      silent = reason;
      groups = undefined;
      ability = undefined;
    },
    binaries: () =>
      (known ??=
        options.ociRuntime === undefined ? usable(findOciRuntimes(options.path)) : [chosenOciRuntime(options.ociRuntime, options.path)]),
    prefer: (binary) => {
      known = [binary, ...(known ?? []).filter(({ path }) => path !== binary.path)];
    },
    hardLimits: once(() => parseHardLimits(readFileSync("/proc/self/limits", "latin1"))),
    criu: once(() => (process.getuid?.() === 0 ? findCriu(options) : null)),
    mkfs,
    bases: new Map(),
  };
}

function findCriu({ criu, path }: OciOptions): string | null {
  if (criu === undefined) return findProgram("criu", path);
  return findProgram(basename(criu), dirname(criu));
}

function findParents(options: OciOptions, silent: string | null): CgroupParents {
  const { uid, username: userName } = userInfo();
  const session = options.session ?? {};
  return cgroupParents({
    layout: readLayout(),
    root: uid === 0,
    manager: { find: (mountPoint) => findUserSystemd({ mountPoint, uid, userName, session }), silent },
    ...(options.command === undefined ? {} : { command: options.command }),
  });
}

/**
 * Leaves out runsc, which is only used by name: it passes no host descriptors to its sandboxes, and the guest's socket
 * is one.
 */
function usable(found: OciBinary[]): OciBinary[] {
  return found.filter(({ name }) => name !== "runsc");
}
