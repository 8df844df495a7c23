import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { ContextView, SavedContext } from "../context-control.ts";
import { askSecret } from "../terminal/ask-secret.ts";
import { canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const TOKEN_BYTES_MAX = 4096;
const THIS_MACHINE = "local";

/** `caisson login URL` */
export async function login(context: CliContext, given: ParsedArguments): Promise<number> {
  const [url = ""] = given.positionals;
  const named = given.option("name") ?? nameOf(url);
  const token = (await tokenGiven(context, given)) ?? (await askForToken(context, url));
  const saved = { ...addressGiven(context, given, url), token };
  const { version } = await context.contexts.check(saved);
  await context.contexts.save(named, saved, { replace: true, use: true });
  if (given.flag("json")) await context.stdout.printJson({ context: named, url, version });
  else
    await context.stderr.print(
      line`caisson: commands now work with the station at ${url} (${named}); \`caisson logout\` goes back to this machine`,
    );
  return 0;
}

/** `caisson logout [NAME]` */
export async function logout(context: CliContext, given: ParsedArguments): Promise<number> {
  const { current } = await context.contexts.list();
  const named = given.positionals[0] ?? current;
  if (named === THIS_MACHINE)
    throw new CaissonError("not_found", "you are logged in nowhere", { hint: "`caisson context ls` lists stations." });
  await context.contexts.forgetToken(named);
  if (named === current) await context.contexts.use(THIS_MACHINE);
  if (given.flag("json")) await context.stdout.printJson({ context: named });
  else
    await context.stderr.print(line`caisson: the token for ${named} is forgotten; it is still worth something until somebody revokes it`);
  return 0;
}

/** `caisson context create NAME --url URL` */
export async function create(context: CliContext, given: ParsedArguments): Promise<number> {
  const [named = ""] = given.positionals;
  const url = given.option("url");
  if (url === undefined)
    throw new CaissonError("invalid", "context create: --url is missing", { hint: "Say where the station is: --url https://…" });
  const token = await tokenGiven(context, given);
  const saved = { ...addressGiven(context, given, url), ...defined({ token }) };
  await context.contexts.save(named, saved, { replace: false, use: given.flag("use") });
  await printOne(context, given, await context.contexts.show(named));
  return 0;
}

/** `caisson context use NAME` */
export async function use(context: CliContext, given: ParsedArguments): Promise<number> {
  const [named = ""] = given.positionals;
  await context.contexts.use(named);
  if (given.flag("json")) await context.stdout.printJson({ current: named });
  else await context.stderr.print(line`caisson: commands now work with ${named === THIS_MACHINE ? "this machine" : named}`);
  return 0;
}

/** `caisson context ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const { current, contexts } = await context.contexts.list();
  if (given.flag("json")) {
    await context.stdout.printJson({ current, contexts });
    return 0;
  }
  const rows = contexts.map(({ name, url, hasToken }) => [name === current ? `${name} *` : name, url, hasToken ? "yes" : "no"]);
  const own = [current === THIS_MACHINE ? `${THIS_MACHINE} *` : THIS_MACHINE, "this machine", "none needed"];
  await context.stdout.print(table([["NAME", "ADDRESS", "TOKEN"], own, ...rows]));
  return 0;
}

/** `caisson context show [NAME]` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const named = given.positionals[0] ?? (await context.contexts.list()).current;
  if (named !== THIS_MACHINE) await printOne(context, given, await context.contexts.show(named));
  else if (given.flag("json")) await context.stdout.printJson({ name: THIS_MACHINE });
  else await context.stdout.print(line`${THIS_MACHINE}: the station of this machine`);
  return 0;
}

/** `caisson context rm NAME…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const named of given.positionals) await context.contexts.remove(named);
  if (given.flag("json")) await context.stdout.printJson({ removed: given.positionals });
  return 0;
}

async function printOne(context: CliContext, given: ParsedArguments, view: ContextView): Promise<void> {
  if (given.flag("json")) return await context.stdout.printJson(view);
  const rows = [
    ["name", view.name],
    ["address", view.url],
    ["token", view.hasToken ? "kept" : "none"],
    ...(view.caFile === null ? [] : [["certificates", view.caFile]]),
    ...(view.insecure ? [["insecure", "the token may go in the clear"]] : []),
  ];
  await context.stdout.print(table(rows));
}

function addressGiven({ cwd }: CliContext, given: ParsedArguments, url: string): SavedContext {
  const caFile = given.option("ca-file");
  return { url, insecure: given.flag("insecure"), ...defined({ caFile: caFile === undefined ? undefined : resolve(cwd, caFile) }) };
}

/** The host's name, as far as it can be a context's. */
function nameOf(url: string): string {
  const host = URL.canParse(url) ? new URL(url).host : "";
  const usable = host
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|-$/g, "")
    .slice(0, 64);
  return usable === "" || usable === THIS_MACHINE ? "station" : usable;
}

async function tokenGiven(context: CliContext, given: ParsedArguments): Promise<string | undefined> {
  const file = given.option("token-file");
  if (given.flag("token-stdin") && file !== undefined)
    throw new CaissonError("invalid", "the token is given twice", { hint: "Leave --token-stdin or --token-file out." });
  if (file !== undefined) return await tokenInFile(resolve(context.cwd, file));
  return given.flag("token-stdin") ? await tokenFromInput(context) : undefined;
}

async function tokenInFile(path: string): Promise<string> {
  const read = await readRegularFile(path, { bytesMax: TOKEN_BYTES_MAX }).catch((cause: unknown) => {
    throw new CaissonError("not_found", `the token's file ${path} cannot be read`, { cause });
  });
  if (typeof read === "string") throw new CaissonError("invalid", `the token's file ${path} is ${read}`);
  return checked(read.bytes.toString("utf8"), path);
}

async function tokenFromInput({ stdin }: CliContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > TOKEN_BYTES_MAX) throw new CaissonError("invalid", "what is on standard input is longer than any token");
  }
  return checked(Buffer.concat(chunks).toString("utf8"), "standard input");
}

async function askForToken(context: CliContext, url: string): Promise<string> {
  if (!canAsk(context)) {
    throw new CaissonError("invalid", "there is no token, and nobody to ask for one", {
      hint: "Give it with --token-stdin or --token-file. `caisson token create NAME` makes one, where the station runs.",
    });
  }
  return checked(await askSecret(context, line`Token for ${url}:`), "what you typed");
}

function checked(text: string, where: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CaissonError("invalid", token === "" ? `there is no token: ${where} is empty` : `${where} is not a token`);
}
