const MIB = 1024 * 1024;
const memory = { outcome: "killed for memory", memoryKills: 1, answered: true, usedBytes: 10 * MIB };
const memoryBut = [
  { ...memory, answered: false },
  { ...memory, outcome: "exited 0" },
  { ...memory, usedBytes: 500 * MIB },
];

/** For each exhaustion claim, one right observation and several that are wrong in one way each. */
export const exhaustionObservations: Readonly<Record<string, { right: unknown; wrong: unknown[] }>> = {
  R01: {
    right: { forks: 60, error: "EAGAIN", answered: true, processes: 62 },
    wrong: [
      { forks: 60, error: "EAGAIN", answered: false, processes: 62 },
      { forks: 3000, error: "ok", answered: true, processes: 62 },
      { forks: 60, error: "EAGAIN", answered: true, processes: 500 },
      { forks: 0, error: "", answered: true, processes: 2 },
    ],
  },
  R02: { right: memory, wrong: [...memoryBut, { ...memory, memoryKills: 0 }] },
  R03: { right: memory, wrong: memoryBut },
  R04: { right: memory, wrong: memoryBut },
  R05: {
    right: { stderr: "No space left", bytes: 30 * MIB, answered: true },
    wrong: [
      { stderr: "", bytes: 128 * MIB, answered: true },
      { stderr: "", bytes: 30 * MIB, answered: false },
    ],
  },
  R07: {
    right: { grownBytes: MIB, outcome: "killed for output", bytes: 8_000_000 },
    wrong: [
      { grownBytes: 1300 * MIB, outcome: "killed for output", bytes: 8_000_000 },
      { grownBytes: MIB, outcome: "exited", bytes: 8_000_000 },
      { grownBytes: MIB, outcome: "killed for output", bytes: 8_000_001 },
    ],
  },
  R09: { right: { p95Ms: 20, commands: 40 }, wrong: [{ p95Ms: 4_000, commands: 40 }] },
  R10: {
    right: { made: { descriptors: "1024 EMFILE", watches: "900000 ok" }, answered: true },
    wrong: [
      { made: { descriptors: "1200000 ok" }, answered: true },
      { made: {}, answered: false },
    ],
  },
  I28: {
    right: { shared: ["ro"], names: [] },
    wrong: [
      { shared: ["ro"], names: ["state/sandboxes"] },
      { shared: [], names: [] },
    ],
  },
  I24: {
    right: { shared: ["ro"], names: [] },
    wrong: [
      { shared: ["ro"], names: ["state/sandboxes"] },
      { shared: [], names: [] },
    ],
  },
  I25: {
    right: {
      limits: {
        user: [
          ["given", "1", "1"],
          ["changed", "1", "1"],
        ],
      },
    },
    wrong: [
      {
        limits: {
          user: [
            ["given", "0", "0"],
            ["changed", "0", "0"],
          ],
        },
      },
      {
        limits: {
          user: [
            ["given", "1", "1"],
            ["changed", "0", "0"],
          ],
        },
      },
      {
        limits: {
          user: [
            ["given", "1", "4096"],
            ["changed", "1", "4096"],
          ],
        },
      },
      { limits: { user: [["given", "1", "1"]] } },
    ],
  },
  R16: {
    right: { made: 64, another: true, host: true },
    wrong: [
      { made: 200, another: true, host: true },
      { made: 64, another: false, host: true },
    ],
  },
  R17: {
    right: { made: 32, another: true, host: true },
    wrong: [
      { made: 32, another: false, host: true },
      { made: 32, another: true, host: false },
    ],
  },
  R12: {
    right: { succeeded: 9_000, busy: 1_000, other: [], answered: true },
    wrong: [
      { succeeded: 9_000, busy: 0, other: ["lost"], answered: true },
      { succeeded: 0, busy: 10_000, other: [], answered: true },
      { succeeded: 9_000, busy: 0, other: [], answered: false },
    ],
  },
  R13: {
    right: { lineBytes: 10_000_000, stdinBytes: 500 * MIB, grownBytes: 0 },
    wrong: [
      { lineBytes: 65_536, stdinBytes: 500 * MIB, grownBytes: 0 },
      { lineBytes: 10_000_000, stdinBytes: 0, grownBytes: 0 },
      { lineBytes: 10_000_000, stdinBytes: 500 * MIB, grownBytes: 500 * MIB },
    ],
  },
  R20: {
    right: { refused: false, bytes: 31 * MIB, sharedGiven: false },
    wrong: [
      { refused: false, bytes: 80 * MIB, sharedGiven: false },
      { refused: false, bytes: 0, sharedGiven: false },
      { refused: true, bytes: 0, sharedGiven: true },
    ],
  },
  R21: {
    right: { made: { "/home/user": 8_000, "/tmp": 8_191, "/dev/shm": 16_383 }, answered: true },
    wrong: [
      { made: { "/tmp": 40_000 }, answered: true },
      { made: { "/tmp": Number.NaN }, answered: true },
      { made: { "/tmp": 0 }, answered: true },
      { made: { "/tmp": 8_000 }, answered: false },
    ],
  },
  R22: {
    right: { refused: false, forks: 60, answered: true },
    wrong: [
      { refused: false, forks: 400, answered: true },
      { refused: false, forks: 0, answered: true },
      { refused: false, forks: 60, answered: false },
    ],
  },
  R23: { right: { fallocate: "EOPNOTSUPP", end: "ok" }, wrong: [{ fallocate: "ok", end: "ok" }, { fallocate: "EOPNOTSUPP" }] },
};
