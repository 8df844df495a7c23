interface StorageKindFacts {
  /** What `df` calls it. */
  text: string;
  /** Whether it consists of things that are counted. */
  isCounted: boolean;
  /** What `prune` calls one of it. */
  thing: string;
  /** Whether `prune` removes it only if the kind is named: then something is lost that people may still want. */
  isOnRequest: boolean;
}

const facts = <Thing extends string>(thing: Thing, text: string, { isCounted = true, isOnRequest = false } = {}) =>
  ({ thing, text, isCounted, isOnRequest }) satisfies StorageKindFacts;

/**
 * Everything that takes room in the state folder. `caisson df` and `caisson prune` know these kinds; where each is, and
 * how it is removed, is in `src/station/machine/`. In the order in which `prune` looks at them: what uses another kind
 * comes before that. Help loads this file, so it has no schemas.
 */
export const storageKinds = {
  sandboxes: facts("sandbox", "sandboxes"),
  sessions: facts("session", "sessions, including the changes of runs"),
  points: facts("points", "earlier states of files, for undo, forks and snapshots", { isOnRequest: true }),
  runs: facts("run", "run logs", { isCounted: false }),
  snapshots: facts("snapshot", "snapshots"),
  images: facts("image", "unpacked images"),
  builds: facts("build", "templates and steps of builds; their files are snapshots", { isCounted: false }),
  templates: facts("template", "templates"),
  skeletons: facts("skeleton", "copies of this machine's system, recreated when needed"),
  mirrors: facts("mirror", "repositories that runs started from"),
  packages: facts("packages", "packages from registries, fetched again when needed", { isCounted: false }),
  uploads: facts("upload", "folders that were sent from other machines"),
  artifacts: facts("artifacts", "files that programs in sandboxes stored"),
  ships: facts("ship", "commits of ships"),
  logs: facts("log", "logs of the station and of processes in the background"),
} as const satisfies Readonly<Record<string, StorageKindFacts>>;
export type StorageKind = keyof typeof storageKinds;

export const storageKindNames = Object.keys(storageKinds) as [StorageKind, ...StorageKind[]];
