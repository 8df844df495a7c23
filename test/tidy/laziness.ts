import type { Rule } from "./rules.ts";

/** The borders of lazy loading: a command loads its implementation, and the composition a group of verbs. */
const borders = /^src\/(?:cli|compose)\/|^src\/[^/]+\.ts$/;

/** Files elsewhere that load something later, each with the reason. */
export const lazyExceptions: Readonly<Record<string, string>> = {
  "src/agent/file/define-agent.ts": "dotprompt, a package that only agent files need",
  "src/agent/model/resolve-model.ts": "the package of one provider, or one kind of script",
  "src/agent/rights/agent-source.ts": "agent files, which a process that only lists runs never reads",
  "src/api/server.ts": "the OpenAPI document, MCP, TLS and previews, which most stations never serve",
  "src/client/remote/remote-sandbox.ts": "Node's streams, which `exec` through a station does without",
  "src/network/sandbox-network/held-secrets.ts": "`exec` without secrets",
  "src/network/sandbox-network/network-record.ts": "`exec` without a network",
  "src/network/sandbox-network/network-service.ts": "`exec` without a network",
  "src/network/sandbox-network/networked-runtime.ts": "`exec` without a gateway",
  "src/network/sandbox-network/sandbox-network.ts": "`exec` without a network",
  "src/runtimes/docker/engine.ts": "dockerode, a package",
  "src/runtimes/oci/basis.ts": "`exec` without an image",
  "src/runtimes/oci/runtime.ts": "`exec` without a probe, an image or a restart",
  "src/station/machine/local-machine.ts": "suites and backups, which are larger than the group",
  "src/station/runs/set-up.ts": "MCP, a package that only agents with servers need",
  "src/station/templates/steps/base-files.ts": "a build whose images are known",
  "src/station/sandboxes/guard-folders.ts": "a state folder without an apply",
  "src/station/sandboxes/local-sandboxes.ts": "`exec` in a new sandbox, and without a folder",
};

const LATER = /\bawait import\(\s*"|=> import\(\s*"|^\s+import\("[^"]+"\),?$/m;

export const lazyAtBorders: Rule = (files) => {
  const later = files.filter(({ path, text }) => path.startsWith("src/") && !isTested(path) && LATER.test(text)).map(({ path }) => path);
  const known = new Set(files.map(({ path }) => path));
  const beyond = later.filter((path) => !borders.test(path) && !(path in lazyExceptions));
  const stale = Object.keys(lazyExceptions).filter((path) => known.has(path) && !later.includes(path));
  return [
    ...beyond.map((path) => ({ path, what: "loads a module later: only a command or a group of verbs does, or a file with a reason" })),
    ...stale.map((path) => ({ path, what: "loads nothing later any longer: remove its reason from laziness.ts" })),
  ];
};

const isTested = (path: string) => /\.test\.tsx?$|\/testing[^/]*\.ts$/.test(path);
