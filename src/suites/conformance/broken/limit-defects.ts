import { SandboxSpec } from "../../../contract/sandbox.ts";
import { program } from "../programs.ts";
import { type Defect, withLimit } from "./broken-runtime.ts";

const noLimits = (asked: SandboxSpec): SandboxSpec => ({ ...asked, limits: {} });
const anyBase = SandboxSpec.parse({});

/** Has the limit in its info and nowhere else. */
function promisedLimit(name: "cpus" | "memoryBytes" | "pids" | "diskBytes"): Defect {
  return {
    what: `${name} is promised and not enforced`,
    capabilities: withLimit(name, true),
    spec: noLimits,
    info: (good, asked) => ({ ...good, limits: { ...good.limits, [name]: asked.limits[name] ?? null } }),
  };
}
function ignoredLimit(name: "cpus" | "memoryBytes" | "pids" | "diskBytes"): Defect {
  return { what: `${name} is ignored`, capabilities: withLimit(name, false), spec: noLimits };
}

/** One for each test that begins with limit. */
export const limitDefects: Record<string, Defect> = {
  "limit: memory kills the process, says why, and the sandbox lives on": {
    ...promisedLimit("memoryBytes"),
    what: "a kill for memory is an exit like any other",
    // Nothing that really takes memory is run here: there would be no limit to it.
    spawn: (asked) => (asked.argv.includes("caisson:hog") ? { ...asked, argv: program("exit", "137") } : asked),
  },
  "limit: processes past the limit are not started, and the next command works": promisedLimit("pids"),
  "limit: disk past the limit is no_space, and freeing makes room again": promisedLimit("diskBytes"),
  "limit: files without content count towards the disk": promisedLimit("diskBytes"),
  "limit: disk holds for a workspace whose changes are kept, or is refused": promisedLimit("diskBytes"),
  "limit: disk is refused with a folder given read-write": { what: "the limit holds elsewhere only", spec: noLimits },
  "limit: processes of root inside count as well, or the limit is refused": promisedLimit("pids"),
  "limit: processor time is no more than the share asked for": {
    ...promisedLimit("cpus"),
    sandbox: (good) => ({ stats: async () => ({ ...(await good.stats()), cpuMs: performance.now() }) }),
  },
  "limit: cpus is refused as unsupported where it cannot be enforced": ignoredLimit("cpus"),
  "limit: memoryBytes is refused as unsupported where it cannot be enforced": ignoredLimit("memoryBytes"),
  "limit: pids is refused as unsupported where it cannot be enforced": ignoredLimit("pids"),
  "limit: diskBytes is refused as unsupported where it cannot be enforced": ignoredLimit("diskBytes"),
  "limit: defaults are in force where they can be, and a warning says where not": {
    what: "nothing is enforced and nobody is warned",
    sandbox: (good) => ({
      get info() {
        return { ...good.info, limits: { ...good.info.limits, cpus: null, memoryBytes: null, pids: null }, warnings: [] };
      },
    }),
  },
  "limit: /tmp has the size asked for": {
    what: "the size of /tmp is ignored",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    spec: (asked) => ({ ...asked, tmpBytes: anyBase.tmpBytes }),
  },
};
