import { stat } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { createInterface } from "node:readline/promises";
import { settingsOf } from "../agent/file/define-agent.ts";
import { agentAt, agentFilesIn, foldersOfAgents } from "../agent/file/find-agents.ts";
import type { AgentFile } from "../agent/file/parse-agent-file.ts";
import { type Right, rightsOf } from "../agent/rights/rights.ts";
import { createTrustStore, type TrustStore, trusts } from "../agent/rights/trust-store.ts";
import { visible } from "../agent/rights/visible.ts";
import { CaissonError } from "../contract/error.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line, lines } from "./line.ts";
import { agentPlaces } from "./station.ts";
import { table } from "./table.ts";

type Status =
  /** It asks for nothing, or is the user's own. */
  | "nothing to trust"
  | "trusted"
  /** Nobody agreed. */
  | "not trusted"
  /** It asks for what no file can be granted. */
  | "cannot be trusted"
  | "broken";

interface Judged {
  path: string;
  status: Status;
  rights: (Pick<Right, "text" | "never"> & { change: "added" | "kept" | "removed" })[];
  error?: CaissonError;
}

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const trust = createTrustStore({ stateDir: context.stateDir });
  if (given.flag("list")) return await list(context, trust, given);
  if (given.flag("revoke")) return await revoke(context, trust, given);
  const results: Judged[] = [];
  for (const path of await filesAskedFor(context, given)) results.push(await judge(context, { trust, path, given }));
  if (given.flag("json")) {
    await context.stdout.printJson(results.map((each) => ({ ...each, error: each.error?.toJSON() ?? null })));
  }
  return results.every(({ status }) => status === "trusted" || status === "nothing to trust") ? 0 : 1;
}

/** Throws `not_found` for what is not there, and for a folder without an agent's file. */
async function filesAskedFor(context: CliContext, given: ParsedArguments): Promise<string[]> {
  const words = given.positionals.length === 0 ? ["."] : given.positionals;
  const files = words.map(async (word) => {
    const path = resolve(context.cwd, word);
    const found = await stat(path).catch(() => null);
    if (found === null) throw new CaissonError("not_found", `there is no ${visible(word)}`);
    if (!found.isDirectory()) return [path];
    const inside = (await Promise.all([path, ...foldersOfAgents(path)].map(agentFilesIn))).flat();
    if (inside.length === 0) {
      throw new CaissonError("not_found", `${visible(word)} has no agent's file`, {
        hint: "They are .prompt files in the folder itself, in agents/ and in .caisson/agents/.",
      });
    }
    return inside;
  });
  return (await Promise.all(files)).flat();
}

/** Shows what a file asks for, against what was agreed to before, and asks. Throws `denied` when there is nobody to ask. */
async function judge(context: CliContext, about: { trust: TrustStore; path: string; given: ParsedArguments }): Promise<Judged> {
  const { trust, path, given } = about;
  const json = given.flag("json");
  const say = async (text: string) => {
    if (!json) await context.stdout.print(lines(text));
  };
  const shown = visible(relative(context.cwd, path) || path);
  const agent = await agentAt(path, agentPlaces(context));
  const asked = rightsAskedFor(agent.file, context);
  if (asked instanceof CaissonError) {
    await say(asked.message);
    return { path, status: "broken", rights: [], error: asked };
  }
  if (agent.origin !== "folder" || asked.rights.length === 0) {
    await say(
      agent.origin === "folder" ? `${shown} asks for nothing that has to be trusted.` : `${shown} needs no trust: it is ${agent.origin}.`,
    );
    return { path, status: "nothing to trust", rights: [] };
  }
  const before = await trust.get(path);
  const rights = changesOf(asked.rights, before?.rights ?? []);
  if (trusts(before, asked.source)) {
    await say(`${shown} is trusted already, with this content.`);
    return { path, status: "trusted", rights };
  }
  await say(before === null ? `${shown} asks for more than any agent may do:` : `${shown} has changed since you trusted it. It asks for:`);
  for (const right of rights) await say(lineOf(right));
  if (asked.rights.some(({ never }) => never !== undefined)) {
    await say("It cannot be trusted as it is.");
    return { path, status: "cannot be trusted", rights };
  }
  if (!(await agrees(context, given))) return { path, status: "not trusted", rights };
  await trust.record({ path, source: asked.source, rights: asked.rights.map(({ text }) => text) });
  await say(`Trusted, with this content. \`caisson trust --revoke ${shown}\` takes it back.`);
  return { path, status: "trusted", rights };
}

function rightsAskedFor(file: AgentFile | CaissonError, context: CliContext): { source: string; rights: Right[] } | CaissonError {
  if (file instanceof CaissonError) return file;
  try {
    return { source: file.source, rights: rightsOf(settingsOf(file), { limits: context.config.limits }) };
  } catch (error) {
    if (error instanceof CaissonError) return error;
    throw error;
  }
}

function changesOf(rights: readonly Right[], before: readonly string[]): Judged["rights"] {
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

const marks = { added: "+", kept: " ", removed: "-" } as const;

function lineOf({ text, change, never }: Judged["rights"][number]): string {
  return `  ${marks[change]} ${text}${never === undefined ? "" : `\n    impossible: ${never}`}`;
}

async function agrees(context: CliContext, given: ParsedArguments): Promise<boolean> {
  if (given.flag("yes")) return true;
  if (given.flag("json")) return false;
  if (!context.stdout.isTerminal || !context.stdin.isTTY) {
    throw new CaissonError("denied", "nobody is here to be asked whether this is to be trusted", {
      hint: "Use a terminal, or say --yes after looking at the file.",
    });
  }
  await context.stdout.prompt(line`Trust it with this content? [y/N] `);
  const reader = createInterface({ input: context.stdin });
  const answer = await new Promise<string>((settle) => {
    reader.once("line", settle);
    reader.once("close", () => settle(""));
  });
  reader.close();
  return /^y(es)?$/i.test(answer.trim());
}

async function list(context: CliContext, trust: TrustStore, given: ParsedArguments): Promise<number> {
  const rows = await Promise.all(
    (await trust.list()).map(async (record) => {
      const { file } = await agentAt(record.path, agentPlaces(context));
      const there = (await stat(record.path).catch(() => null)) !== null;
      const state = !there ? "gone" : !(file instanceof CaissonError) && trusts(record, file.source) ? "trusted" : "changed since";
      return { path: record.path, state, at: record.at, rights: record.rights };
    }),
  );
  if (given.flag("json")) await context.stdout.printJson(rows);
  else {
    const cells = rows.map(({ path, state, at, rights }) => [visible(path), state, at, String(rights.length)]);
    await context.stdout.print(table([["FILE", "STATE", "SINCE", "RIGHTS"], ...cells]));
  }
  return 0;
}

/** Takes back what was agreed to for files, or for all below a folder. Exit 1 when there was nothing. */
async function revoke(context: CliContext, trust: TrustStore, given: ParsedArguments): Promise<number> {
  if (given.positionals.length === 0)
    throw new CaissonError("invalid", "no file was named", { hint: "`caisson trust --list` shows what is trusted." });
  const revoked: string[] = [];
  for (const word of given.positionals) {
    const path = resolve(context.cwd, word);
    const below = (await trust.list()).map((record) => record.path).filter((each) => each.startsWith(join(path, sep)));
    for (const each of [path, ...below]) if (await trust.revoke(each)) revoked.push(each);
  }
  if (given.flag("json")) await context.stdout.printJson({ revoked });
  else await context.stdout.print(revoked.map((path) => line`${visible(path)} is no longer trusted.`));
  if (revoked.length > 0) return 0;
  if (!given.flag("json")) await context.stderr.print(line`caisson: nothing of that was trusted`);
  return 1;
}
