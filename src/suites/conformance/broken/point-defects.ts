import { newId } from "../../../lib/new-id.ts";
import type { MachinePoints, SnapshotPoints } from "../../../sandbox/machine-points.ts";
import type { Defect } from "./broken-runtime.ts";

/** Claims to take points in a runtime that has none. */
const pretendedPoints: MachinePoints = {
  take: async () => ({ id: "ly_aaaaaaaaaaaa", files: 1, bytes: 1, isNew: true }),
  restore: async () => undefined,
  fork: async () => undefined,
  keep: async () => undefined,
  remove: async () => undefined,
  list: async () => [],
};
const pretendedSnapshots: SnapshotPoints = {
  take: async () => ({ id: newId("sn"), files: 1, bytes: 1, isNew: true }),
  keep: async () => undefined,
  remove: async () => undefined,
  list: async () => [],
};

/** Defects of points: one for each test whose name starts with points. */
export const pointDefects: Record<string, Defect> = {
  "points: a layer gets the files of a point back, and a fork has them": {
    what: "a restore restores nothing",
    runtime: ({ points = pretendedPoints }) => ({ points: { ...points, restore: async () => undefined } }),
  },
  "points: a snapshot that a session keeps has the files of its time": {
    what: "a session that keeps a point is not counted",
    runtime: ({ snapshotPoints = pretendedSnapshots }) => ({
      snapshotPoints: { ...snapshotPoints, keep: async () => undefined },
    }),
  },
};
