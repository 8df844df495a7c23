import { relative, resolve } from "node:path";
import type { AgentTrust } from "../../contract/agent-verbs.ts";
import { CaissonError } from "../../contract/error.ts";
import { visible } from "../../lib/visible.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.flag("list")) return await list(context, given);
  if (given.flag("revoke")) return await revoke(context, given);
  const words = given.positionals.length === 0 ? ["."] : given.positionals;
  const files = words.map((word) => context.station.agents.filesAt(resolve(context.cwd, word), { as: word }));
  const results: AgentTrust[] = [];
  for (const path of (await Promise.all(files)).flat()) results.push(await judge(context, path, given));
  if (given.flag("json")) {
    await context.stdout.printJson(results.map(({ path, status, rights, fault }) => ({ path, status, rights, error: fault })));
  }
  return results.every(({ status }) => status === "trusted" || status === "nothing to trust") ? 0 : 1;
}

/**
 * Shows what a file asks for, against what was agreed to before, and asks. Throws `denied` when there is nobody to ask.
 */
async function judge(context: CliContext, path: string, given: ParsedArguments): Promise<AgentTrust> {
  const json = given.flag("json");
  const say = async (text: string) => {
    if (!json) await context.stdout.print(lines(text));
  };
  const shown = visible(relative(context.cwd, path) || path);
  const judged = await context.station.agents.judge(path);
  const { status, origin, rights, digest, changed } = judged;
  if (status === "broken") await say(judged.fault?.message ?? `${shown} is broken`);
  if (status === "nothing to trust") {
    await say(origin === "folder" ? `${shown} asks for nothing that has to be trusted.` : `${shown} needs no trust: it is ${origin}.`);
  }
  if (status === "trusted") await say(`${shown} is trusted already, with this content.`);
  if (status !== "not trusted" && status !== "cannot be trusted") return judged;
  await say(changed ? `${shown} has changed since you trusted it. It asks for:` : `${shown} asks for more than any agent may do:`);
  for (const right of rights) await say(lineOf(right));
  if (status === "cannot be trusted") await say("It cannot be trusted as it is.");
  if (status === "cannot be trusted" || digest === null || !(await agrees(context, given))) return judged;
  await context.station.agents.trust(path, { digest });
  await say(`Trusted, with this content. \`caisson trust --revoke ${shown}\` takes it back.`);
  return { ...judged, status: "trusted" };
}

const marks = { added: "+", kept: " ", removed: "-" } as const;

function lineOf({ text, change, never }: AgentTrust["rights"][number]): string {
  return `  ${marks[change]} ${text}${never === undefined ? "" : `\n    impossible: ${never}`}`;
}

async function agrees(context: CliContext, given: ParsedArguments): Promise<boolean> {
  if (given.flag("yes")) return true;
  if (given.flag("json")) return false;
  if (!canAsk(context)) {
    throw new CaissonError("denied", "this needs an answer, and there is nobody to ask", {
      hint: "Use a terminal, or say --yes after looking at the file.",
    });
  }
  return await askYes(context, line`Trust it with this content?`);
}

async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const rows = await context.station.agents.trusted();
  if (given.flag("json")) await context.stdout.printJson(rows);
  else {
    const cells = rows.map(({ path, state, at, rights }) => [visible(path), state, at, String(rights.length)]);
    await context.stdout.print(table([["FILE", "STATE", "SINCE", "RIGHTS"], ...cells]));
  }
  return 0;
}

/** Takes back what was agreed to for files, or for all below a folder. Exit 1 when there was nothing. */
async function revoke(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.positionals.length === 0)
    throw new CaissonError("invalid", "no file was named", { hint: "`caisson trust --list` shows what is trusted." });
  const revoked: string[] = [];
  for (const word of given.positionals) revoked.push(...(await context.station.agents.revoke(resolve(context.cwd, word))));
  if (given.flag("json")) await context.stdout.printJson({ revoked });
  else await context.stdout.print(revoked.map((path) => line`${visible(path)} is no longer trusted.`));
  if (revoked.length > 0) return 0;
  if (!given.flag("json")) await context.stderr.print(line`caisson: nothing of that was trusted`);
  return 1;
}
