/** Names that several parts of the station share: of log streams, reserved labels and snapshots. */

export const runStream = (run: string) => `run/${run}`;
export const runOf = (stream: string) => stream.slice("run/".length);

export const sandboxStream = (sandbox: string) => `sandbox/${sandbox}`;
export const sandboxOf = (stream: string) => stream.slice("sandbox/".length);

/** The label of a sandbox that belongs to a run. */
export const RUN_LABEL = "run";

/** The name of the snapshot that holds the files of a session between its runs. */
export const snapshotName = (session: string) => `session:${session}`;

/** The name of a snapshot that a template build took, and the pattern that finds its build. Users cannot choose it. */
export const buildSnapshotName = (build: string, number: number) => `build:${build}:${number}`;
export const BUILD_SNAPSHOT = /^build:([a-z2-7_]{1,40}):\d+$/;

/** The label of a sandbox in which a step of a build runs. */
export const BUILD_LABEL = "build";
