import { readFile, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { type AgentPlaces, foldersOfAgents } from "../../agent/file/agent-places.ts";
import { defineAgent, settingsOf } from "../../agent/file/define-agent.ts";
import { agentAt, agentFilesIn, findAgent, findAgents } from "../../agent/file/find-agents.ts";
import { parseAgentFile } from "../../agent/file/parse-agent-file.ts";
import { checkModelName } from "../../agent/model/resolve-model.ts";
import { type Right, rightsBeyond } from "../../agent/rights/rights.ts";
import { createTrustStore, digestOfText, trusts } from "../../agent/rights/trust-store.ts";
import type { AgentDefaults } from "../../contract/agent/agent-defaults.ts";
import type { AgentTrust } from "../../contract/agent/agent-verbs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { LimitsRequest } from "../../contract/sandbox/sandbox-fields.ts";
import { visible } from "../../contract/visible-text.ts";
import { defined } from "../../lib/defined.ts";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import type { AgentVerbs } from "../../verbs/agents.ts";
import { checkAgent } from "./check-agent.ts";

export interface LocalAgentsOptions {
  stateDir: string;
  places: AgentPlaces;
  /** Limits of agents whose file sets none. A file that requests no more than these needs no trust. */
  limits: LimitsRequest;
  /** Defaults for every agent, from the configuration. */
  defaults: AgentDefaults;
}

/** Manages the agent files of this machine. */
export function createLocalAgents(options: LocalAgentsOptions): AgentVerbs {
  const { places, limits, defaults } = options;
  const trust = createTrustStore(options);
  const examineFile = async (path: string) => {
    const { file, origin } = await agentAt(path, places);
    if (file instanceof CaissonError) return { origin, fault: file };
    const rights = await faultOf(async () => rightsBeyond(settingsOf(file, defaults), defaults, limits));
    return rights instanceof CaissonError ? { origin, fault: rights } : { origin, fault: null, source: file.source, rights };
  };
  const agents: AgentVerbs = {
    async list() {
      const found = await findAgents(places);
      return found.map(({ file, ...agent }) => ({
        ...agent,
        hidden: found.find(({ name }) => name === agent.name)?.path !== agent.path,
        description: file instanceof CaissonError ? "" : (file.frontmatter.description ?? ""),
        fault: file instanceof CaissonError ? file.toJSON() : null,
      }));
    },
    show: async (name, { input = {} } = {}) => defineAgent((await findAgent(name, places)).file, { input, defaults }),
    async validate(path, { as }) {
      const found = await faultOf(async () => {
        const source = await readFile(path, "utf8").catch((error: unknown) => {
          throw new CaissonError("not_found", `${as} cannot be read`, { cause: error });
        });
        const definition = await defineAgent(parseAgentFile(as, source), { checkInput: false, defaults });
        const find = async (name: string) => await defineAgent((await findAgent(name, places)).file, { checkInput: false, defaults });
        await checkAgent(definition, { find, checkModel: async (name) => checkModelName(name) }).catch((error: unknown) => {
          throw error instanceof CaissonError ? inFile(as, error) : error;
        });
      });
      return found instanceof CaissonError ? found.toJSON() : null;
    },
    filesAt,
    async judge(path) {
      const file = await examineFile(path);
      const of = { path, origin: file.origin, changed: false, rights: [], digest: null, fault: file.fault?.toJSON() ?? null };
      if (file.fault !== null) return { ...of, status: "broken" };
      if (file.origin !== "folder" || file.rights.length === 0) return { ...of, status: "nothing to trust" };
      const before = await trust.get(path);
      const rights = changesOf(file.rights, before?.rights ?? []);
      const judged = { ...of, rights, digest: digestOfText(file.source), changed: before !== null };
      if (trusts(before, file.source)) return { ...judged, status: "trusted" };
      return { ...judged, status: file.rights.some(({ never }) => never !== undefined) ? "cannot be trusted" : "not trusted" };
    },
    async trust(path, { digest }) {
      const file = await examineFile(path);
      if (file.fault !== null) throw file.fault;
      if (digestOfText(file.source) !== digest) {
        throw new CaissonError("conflict", `${visible(path)} has changed since it was shown`, { hint: "Review it again." });
      }
      const never = file.rights.find((right) => right.never !== undefined)?.never;
      if (never !== undefined) throw new CaissonError("denied", `${visible(path)} requests a right that no file can be granted: ${never}`);
      await trust.record({ path, source: file.source, rights: file.rights.map(({ text }) => text) });
    },
    async trusted() {
      const records = (await trust.list()).map(async (record) => {
        const { file } = await agentAt(record.path, places);
        const there = (await ifErrno(stat(record.path), UNREACHABLE, null)) !== null;
        const same = !(file instanceof CaissonError) && trusts(record, file.source);
        const state = !there ? ("gone" as const) : same ? ("trusted" as const) : ("changed since" as const);
        return { path: record.path, state, at: record.at, rights: record.rights };
      });
      return await Promise.all(records);
    },
    async revoke(path) {
      const below = (await trust.list()).map((record) => record.path).filter((each) => each.startsWith(join(path, sep)));
      const revoked: string[] = [];
      for (const each of [path, ...below]) if (await trust.revoke(each)) revoked.push(each);
      return revoked;
    },
  };
  return agents;
}

function inFile(file: string, { code, message, hint, details }: CaissonError): CaissonError {
  const lines = message.split("\n").map((line) => `${file}: ${line}`);
  return new CaissonError(code, lines.join("\n"), defined({ hint, details }));
}

async function filesAt(path: string, { as }: { as: string }): Promise<string[]> {
  const found = await ifErrno(stat(path), UNREACHABLE, null);
  if (found === null) throw new CaissonError("not_found", `there is no ${visible(as)}`);
  if (!found.isDirectory()) return [path];
  const inside = (await Promise.all([path, ...foldersOfAgents(path)].map(agentFilesIn))).flat();
  if (inside.length > 0) return inside;
  throw new CaissonError("not_found", `${visible(as)} contains no agent file`, {
    hint: "Agent files end in .prompt and are in the folder itself, in agents/ or in .caisson/agents/.",
  });
}

async function faultOf<Result>(work: () => Promise<Result>): Promise<Result | CaissonError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CaissonError) return error;
    throw error;
  }
}

function changesOf(rights: readonly Right[], before: readonly string[]): AgentTrust["rights"] {
  const now = new Set(rights.map(({ text }) => text));
  return [
    ...rights.map(({ text, never }) => ({
      text,
      change: before.includes(text) ? ("kept" as const) : ("added" as const),
      ...(never === undefined ? {} : { never }),
    })),
    ...before.filter((text) => !now.has(text)).map((text) => ({ text, change: "removed" as const })),
  ];
}
