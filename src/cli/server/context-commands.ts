import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { defined } from "../../lib/defined.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { ContextView, SavedContext } from "../context-control.ts";
import { removeNamed } from "../print-result.ts";
import { askSecret } from "../terminal/ask-secret.ts";
import { canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const TOKEN_BYTES_MAX = 4096;
const THIS_MACHINE = "local";

/** `caisson login URL` */
export async function login(context: CliContext, args: ParsedArguments): Promise<number> {
  const [url = ""] = args.positionals;
  const named = args.option("name") ?? nameOf(url);
  const token = (await tokenGiven(context, args)) ?? (await askForToken(context, url));
  const saved = { ...addressGiven(context, args, url), token };
  const { version } = await context.contexts.check(saved);
  await context.contexts.save(named, saved, { replace: true, use: true });
  if (args.flag("json")) await context.stdout.printJson({ context: named, url, version });
  else
    await context.stderr.print(
      line`caisson: commands now work with the station at ${url} (${named}); \`caisson logout\` returns to this machine`,
    );
  return 0;
}

/** `caisson logout [NAME]` */
export async function logout(context: CliContext, args: ParsedArguments): Promise<number> {
  const { current } = await context.contexts.list();
  const named = args.positionals[0] ?? current;
  if (named === THIS_MACHINE)
    throw new CaissonError("not_found", "you are not logged in to a station", { hint: "Run `caisson context ls` to list stations." });
  await context.contexts.forgetToken(named);
  if (named === current) await context.contexts.use(THIS_MACHINE);
  if (args.flag("json")) await context.stdout.printJson({ context: named });
  else await context.stderr.print(line`caisson: removed the token for ${named}; it stays valid until you revoke it on the station`);
  return 0;
}

/** `caisson context create NAME --url URL` */
export async function create(context: CliContext, args: ParsedArguments): Promise<number> {
  const [named = ""] = args.positionals;
  const url = args.option("url");
  if (url === undefined)
    throw new CaissonError("invalid", "context create: --url is missing", { hint: "Add the station's URL: --url https://…" });
  const token = await tokenGiven(context, args);
  const saved = { ...addressGiven(context, args, url), ...defined({ token }) };
  await context.contexts.save(named, saved, { replace: false, use: args.flag("use") });
  await printOne(context, args, await context.contexts.show(named));
  return 0;
}

/** `caisson context use NAME` */
export async function use(context: CliContext, args: ParsedArguments): Promise<number> {
  const [named = ""] = args.positionals;
  await context.contexts.use(named);
  if (args.flag("json")) await context.stdout.printJson({ current: named });
  else await context.stderr.print(line`caisson: commands now work with ${named === THIS_MACHINE ? "this machine" : named}`);
  return 0;
}

/** `caisson context ls` */
export async function listContexts(context: CliContext, args: ParsedArguments): Promise<number> {
  const { current, contexts } = await context.contexts.list();
  if (args.flag("json")) {
    await context.stdout.printJson({ current, contexts });
    return 0;
  }
  const rows = contexts.map(({ name, url, hasToken }) => [name === current ? `${name} *` : name, url, hasToken ? "yes" : "no"]);
  const own = [current === THIS_MACHINE ? `${THIS_MACHINE} *` : THIS_MACHINE, "this machine", "none needed"];
  await context.stdout.print(table([["NAME", "ADDRESS", "TOKEN"], own, ...rows]));
  return 0;
}

/** `caisson context show [NAME]` */
export async function showContext(context: CliContext, args: ParsedArguments): Promise<number> {
  const named = args.positionals[0] ?? (await context.contexts.list()).current;
  if (named !== THIS_MACHINE) await printOne(context, args, await context.contexts.show(named));
  else if (args.flag("json")) await context.stdout.printJson({ name: THIS_MACHINE });
  else await context.stdout.print(line`${THIS_MACHINE}: the station of this machine`);
  return 0;
}

/** `caisson context rm NAME…` */
export async function removeContexts(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, { remove: (name) => context.contexts.remove(name) });
}

async function printOne(context: CliContext, args: ParsedArguments, view: ContextView): Promise<void> {
  if (args.flag("json")) return await context.stdout.printJson(view);
  const rows = [
    ["name", view.name],
    ["address", view.url],
    ["token", view.hasToken ? "kept" : "none"],
    ...(view.caFile === null ? [] : [["certificates", view.caFile]]),
    ...(view.insecure ? [["insecure", "the token may be sent unencrypted"]] : []),
  ];
  await context.stdout.print(table(rows));
}

function addressGiven({ cwd }: CliContext, args: ParsedArguments, url: string): SavedContext {
  const caFile = args.option("ca-file");
  return { url, insecure: args.flag("insecure"), ...defined({ caFile: caFile === undefined ? undefined : resolve(cwd, caFile) }) };
}

/** Derives a context name from the URL's host. */
function nameOf(url: string): string {
  const host = URL.canParse(url) ? new URL(url).host : "";
  const usable = host
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|-$/g, "")
    .slice(0, 64);
  return usable === "" || usable === THIS_MACHINE ? "station" : usable;
}

async function tokenGiven(context: CliContext, args: ParsedArguments): Promise<string | undefined> {
  const file = args.option("token-file");
  if (args.flag("token-stdin") && file !== undefined)
    throw new CaissonError("invalid", "the token is given twice", { hint: "Remove --token-stdin or --token-file." });
  if (file !== undefined) return await tokenInFile(resolve(context.cwd, file));
  return args.flag("token-stdin") ? await tokenFromInput(context) : undefined;
}

async function tokenInFile(path: string): Promise<string> {
  const read = await readRegularFile(path, { bytesMax: TOKEN_BYTES_MAX }).catch((cause: unknown) => {
    throw new CaissonError("not_found", `the token file ${path} cannot be read`, { cause });
  });
  if (typeof read === "string") throw new CaissonError("invalid", `the token file ${path} is ${read}`);
  return parseToken(read.bytes.toString("utf8"), path);
}

async function tokenFromInput({ stdin }: CliContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > TOKEN_BYTES_MAX) throw new CaissonError("invalid", "standard input is too long for a token");
  }
  return parseToken(Buffer.concat(chunks).toString("utf8"), "standard input");
}

async function askForToken(context: CliContext, url: string): Promise<string> {
  if (!canAsk(context)) {
    throw new CaissonError("invalid", "there is no token, and no terminal to ask for one", {
      hint: "Use --token-stdin or --token-file. To create a token, run `caisson token create NAME` on the station's machine.",
    });
  }
  return parseToken(await askSecret(context, line`Token for ${url}:`), "your input");
}

function parseToken(text: string, where: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CaissonError("invalid", token === "" ? `there is no token: ${where} is empty` : `${where} is not a token`);
}
