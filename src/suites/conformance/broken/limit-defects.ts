import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { program } from "../programs.ts";
import { type Defect, withLimit } from "./broken-runtime.ts";

const noLimits = (config: SandboxConfig): SandboxConfig => ({ ...config, limits: {} });
const anyBase = SandboxConfig.parse({});

/** Reports the limit in the sandbox's info but does not enforce it. */
function promisedLimit(name: "cpus" | "memoryBytes" | "pids" | "diskBytes"): Defect {
  return {
    what: `${name} is reported but not enforced`,
    capabilities: withLimit(name, true),
    config: noLimits,
    info: (good, config) => ({ ...good, limits: { ...good.limits, [name]: config.limits[name] ?? null } }),
  };
}
function ignoredLimit(name: "cpus" | "memoryBytes" | "pids" | "diskBytes"): Defect {
  return { what: `${name} is ignored`, capabilities: withLimit(name, false), config: noLimits };
}

/** One for each test whose name starts with limit. */
export const limitDefects: Record<string, Defect> = {
  "limit: exceeding memory kills the process, but not the sandbox": {
    ...promisedLimit("memoryBytes"),
    what: "a kill for memory looks like an ordinary exit",
    // The real program would take memory without any limit, so it is not run.
    spawn: (options) => (options.argv.includes("caisson:hog") ? { ...options, argv: program("exit", "137") } : options),
  },
  "limit: processes beyond the limit do not start, and the next command works": promisedLimit("pids"),
  "limit: writing beyond the disk limit is no_space until space is freed": promisedLimit("diskBytes"),
  "limit: empty files count toward the disk": promisedLimit("diskBytes"),
  "limit: disk applies to a workspace with a layer, or is unsupported": promisedLimit("diskBytes"),
  "limit: disk is unsupported with a read-write folder": { what: "the limit only applies elsewhere", config: noLimits },
  "limit: processes of root inside count, or the limit is unsupported": promisedLimit("pids"),
  "limit: processor time stays within the requested share": {
    ...promisedLimit("cpus"),
    sandbox: (good) => ({ stats: async () => ({ ...(await good.stats()), cpuMs: performance.now() }) }),
  },
  "limit: cpus is unsupported if the runtime cannot enforce it": ignoredLimit("cpus"),
  "limit: memoryBytes is unsupported if the runtime cannot enforce it": ignoredLimit("memoryBytes"),
  "limit: pids is unsupported if the runtime cannot enforce it": ignoredLimit("pids"),
  "limit: diskBytes is unsupported if the runtime cannot enforce it": ignoredLimit("diskBytes"),
  "limit: defaults are enforced, or a warning says that they are not": {
    what: "nothing is enforced and there is no warning",
    sandbox: (good) => ({
      get info() {
        return { ...good.info, limits: { ...good.info.limits, cpus: null, memoryBytes: null, pids: null }, warnings: [] };
      },
    }),
  },
  "limit: /tmp has the requested size": {
    what: "the size of /tmp is ignored",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    config: (config) => ({ ...config, tmpBytes: anyBase.tmpBytes }),
  },
};
