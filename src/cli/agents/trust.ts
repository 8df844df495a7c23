import { relative, resolve } from "node:path";
import type { AgentTrust } from "../../contract/agent/agent-verbs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { visible } from "../../contract/visible-text.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

export async function runTrust(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("list")) return await list(context, args);
  if (args.flag("revoke")) return await revoke(context, args);
  const words = args.positionals.length === 0 ? ["."] : args.positionals;
  const files = words.map((word) => context.station.agents.filesAt(resolve(context.cwd, word), { as: word }));
  const results: AgentTrust[] = [];
  for (const path of (await Promise.all(files)).flat()) results.push(await judge(context, path, args));
  if (args.flag("json")) {
    await context.stdout.printJson(results.map(({ path, status, rights, fault }) => ({ path, status, rights, error: fault })));
  }
  return results.every(({ status }) => status === "trusted" || status === "nothing to trust") ? 0 : 1;
}

/**
 * Shows what a file requests, compared with what the user last agreed to, and asks for consent. Throws `denied` if
 * there is no terminal.
 */
async function judge(context: CliContext, path: string, args: ParsedArguments): Promise<AgentTrust> {
  const json = args.flag("json");
  const say = async (text: string) => {
    if (!json) await context.stdout.print(lines(text));
  };
  const displayPath = visible(relative(context.cwd, path) || path);
  const judged = await context.station.agents.judge(path);
  const { status, origin, rights, digest, changed } = judged;
  if (status === "broken") await say(judged.fault?.message ?? `${displayPath} is broken`);
  if (status === "nothing to trust") {
    await say(
      origin === "folder" ? `${displayPath} requests nothing that needs trust.` : `${displayPath} needs no trust: it is ${origin}.`,
    );
  }
  if (status === "trusted") await say(`${displayPath} is already trusted with this content.`);
  if (status !== "not trusted" && status !== "cannot be trusted") return judged;
  await say(
    changed
      ? `${displayPath} has changed since you trusted it. It requests:`
      : `${displayPath} requests more than an untrusted agent may do:`,
  );
  for (const right of rights) await say(lineOf(right));
  if (status === "cannot be trusted") await say("It cannot be trusted as it is.");
  if (status === "cannot be trusted" || digest === null || !(await agrees(context, args))) return judged;
  await context.station.agents.trust(path, { digest });
  await say(`Trusted with this content. Run \`caisson trust --revoke ${displayPath}\` to withdraw trust.`);
  return { ...judged, status: "trusted" };
}

const marks = { added: "+", kept: " ", removed: "-" } as const;

function lineOf({ text, change, never }: AgentTrust["rights"][number]): string {
  return `  ${marks[change]} ${text}${never === undefined ? "" : `\n    impossible: ${never}`}`;
}

async function agrees(context: CliContext, args: ParsedArguments): Promise<boolean> {
  if (args.flag("yes")) return true;
  if (args.flag("json")) return false;
  if (!canAsk(context)) {
    throw new CaissonError("denied", "this needs your consent, and there is no terminal to ask on", {
      hint: "Run it in a terminal, or review the file and add --yes.",
    });
  }
  return await askYes(context, line`Trust it with this content?`);
}

async function list(context: CliContext, args: ParsedArguments): Promise<number> {
  const rows = await context.station.agents.trusted();
  if (args.flag("json")) await context.stdout.printJson(rows);
  else {
    const cells = rows.map(({ path, state, at, rights }) => [visible(path), state, at, String(rights.length)]);
    await context.stdout.print(table([["FILE", "STATE", "SINCE", "RIGHTS"], ...cells]));
  }
  return 0;
}

/** Withdraws consent for files, or for all files below a folder. Exits with 1 if none of them was trusted. */
async function revoke(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.positionals.length === 0)
    throw new CaissonError("invalid", "no file was given", { hint: "Run `caisson trust --list` to see the trusted files." });
  const revoked: string[] = [];
  for (const word of args.positionals) revoked.push(...(await context.station.agents.revoke(resolve(context.cwd, word))));
  if (args.flag("json")) await context.stdout.printJson({ revoked });
  else await context.stdout.print(revoked.map((path) => line`${visible(path)} is no longer trusted.`));
  if (revoked.length > 0) return 0;
  if (!args.flag("json")) await context.stderr.print(line`caisson: none of these files was trusted`);
  return 1;
}
