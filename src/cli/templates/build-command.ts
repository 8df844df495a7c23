import { readFileSync } from "node:fs";
import { basename, dirname, relative, resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parsePolicy } from "../../contract/network/network-text.ts";
import { limitFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import type { LimitsRequest } from "../../contract/sandbox/sandbox-fields.ts";
import type { TemplateView } from "../../contract/template/template.ts";
import { type BuildEvent, BuildTemplate, ImportTemplate } from "../../contract/template/template-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { isWithin, lstatOrNull, realPathOrNull } from "../../lib/paths.ts";
import { durationFrom, showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { debianFrom } from "../options/parse-debian.ts";
import { hidingFrom } from "../options/parse-hiding.ts";
import { pairs } from "../options/parse-pairs.ts";
import { readFields } from "../options/read-fields.ts";
import { debianOptions } from "../sandboxes/define-image-commands.ts";
import { line } from "../terminal/line.ts";

const TIMEOUT_MS = 2 * 3_600_000;
const DOCKERFILE_BYTES_MAX = 1024 * 1024;

/** `caisson template build PATH` */
export async function buildTemplate(context: CliContext, args: ParsedArguments): Promise<number> {
  const words = args.options("network");
  // The files of a sandbox with a disk limit cannot be stored as a step.
  const { diskBytes: _, ...configured } = context.config.limits;
  const { memoryBytes, cpus, pids } = limitFieldOptions;
  const request = checkOptions(BuildTemplate, {
    ...sourceFrom(context, args),
    limits: {
      ...configured,
      ...readFields<Pick<LimitsRequest, "memoryBytes" | "cpus" | "pids">>(args, { memoryBytes, cpus, pids }),
      wallClockMs: timeoutFrom(args),
    },
    hiding: hidingFrom(context, args),
    args: pairs(context, args.options("build-arg"), "build-arg"),
    images: imagesFrom(context, args),
    noCache: args.flag("no-cache"),
    ...(words.length > 0 && { network: parsePolicy(words) }),
    ...defined({ name: args.option("name"), target: args.option("target"), runtime: args.option("runtime") }),
  });
  return await follow(context, args, (signal) => context.station.templates.build({ ...request, signal }));
}

/** `caisson template import IMAGE --name NAME` */
export async function importTemplate(context: CliContext, args: ParsedArguments): Promise<number> {
  const name = args.option("name");
  if (name === undefined) throw new CaissonError("invalid", "--name is missing: a template from an image needs a name");
  const image = imageFrom(args.positionals[0] ?? "", context.cwd);
  const request = checkOptions(ImportTemplate, { name, image, ...defined({ runtime: args.option("runtime") }) });
  return await follow(context, args, (signal) => context.station.templates.import({ ...request, signal }));
}

/** Paths of images are relative to the user's current folder. */
function imageFrom(image: string, folder: string): string {
  const [, scheme = "", place = image] = /^(oci:|oci-archive:|docker-archive:)(.+)$/s.exec(image) ?? [];
  return scheme !== "" || /^\.{0,2}\//.test(place) || place === "." ? `${scheme}${resolve(folder, place)}` : image;
}

function imagesFrom(context: CliContext, args: ParsedArguments): Record<string, string> {
  const entries = args.options("base").map((text) => {
    const at = text.indexOf("=");
    if (at <= 0) throw new CaissonError("invalid", `--base ${JSON.stringify(text)} is not NAME=IMAGE`);
    return [text.slice(0, at), imageFrom(text.slice(at + 1), context.cwd)] as const;
  });
  return Object.fromEntries(entries);
}

function timeoutFrom(args: ParsedArguments): number {
  const text = args.option("timeout");
  const ms = text === undefined ? TIMEOUT_MS : durationFrom(text);
  if (ms === null) throw new CaissonError("invalid", `--timeout ${JSON.stringify(text)} is not a duration, such as 30m`);
  return ms;
}

/** Returns the context folder, and the file in it; a Dockerfile elsewhere is sent as text. */
function sourceFrom(context: CliContext, args: ParsedArguments): Pick<BuildTemplate, "context" | "file" | "dockerfile" | "debian"> {
  const [word = "."] = args.positionals;
  const named = resolve(context.cwd, word);
  const path = realPathOrNull(named);
  if (word === "debian" && path === null) return { debian: debianFrom(args) };
  const inVain = debianOptions.find(({ name }) => args.flag(name));
  if (inVain !== undefined) throw new CaissonError("invalid", `--${inVain.name} is only for \`caisson template build debian\``);
  const stats = path === null ? null : lstatOrNull(path);
  if (path === null || stats === null) throw new CaissonError("not_found", `there is no ${named}`);
  const folder = stats.isDirectory() ? path : contextOf(path);
  const option = args.option("file");
  if (option === undefined) return stats.isDirectory() ? { context: folder } : { context: folder, file: relative(folder, path) };
  const file = realPathOrNull(resolve(context.cwd, option));
  if (file === null) throw new CaissonError("not_found", `there is no ${resolve(context.cwd, option)}`);
  if (isWithin(file, folder)) return { context: folder, file: relative(folder, file) };
  return { context: folder, dockerfile: readDockerfile(file) };
}

/** The project of a devcontainer.json is the folder above .devcontainer. */
function contextOf(file: string): string {
  const folder = dirname(file);
  return file.endsWith(".json") && basename(folder) === ".devcontainer" ? dirname(folder) : folder;
}

function readDockerfile(file: string): string {
  const size = lstatOrNull(file)?.size ?? 0;
  if (size > DOCKERFILE_BYTES_MAX) throw new CaissonError("too_large", `${file} is larger than ${DOCKERFILE_BYTES_MAX} bytes`);
  return readFileSync(file, "utf8");
}

/** Prints a build as it happens: what it does on stderr, the template on stdout. A signal stops it. */
async function follow(
  context: CliContext,
  args: ParsedArguments,
  start: (signal: AbortSignal) => AsyncIterable<BuildEvent>,
): Promise<number> {
  const stop = new AbortController();
  void context.interruption.first.then(() => stop.abort());
  const output = createLineSplitter();
  let template: TemplateView | null = null;
  for await (const event of start(stop.signal)) {
    if (args.flag("json")) await context.stdout.printJson(event);
    else if (!args.flag("quiet")) for (const text of linesOf(event, output)) await context.stderr.print(line`${text}`);
    if ("template" in event) template = event.template;
  }
  if (template === null) throw new CaissonError("protocol", "the build ended without a template");
  if (args.flag("json")) return 0;
  const { id, names, bytes } = template;
  await context.stdout.print(line`${id}`);
  const name = args.option("name") ?? names[0] ?? id;
  if (!args.flag("quiet"))
    await context.stderr.print([
      line`caisson: built ${name}, ${showBytes(bytes)}`,
      line`Use it with: caisson exec --template ${name} -- COMMAND`,
    ]);
  return 0;
}

/** Joins pieces of output to lines; the rest waits for the next piece. */
function createLineSplitter() {
  let rest = "";
  return {
    take(text: string): string[] {
      const lines = (rest + text).split(/\r?\n|\r/);
      rest = lines.pop() ?? "";
      return lines;
    },
    flush(): string[] {
      const last = rest;
      rest = "";
      return last === "" ? [] : [last];
    },
  };
}

function linesOf(event: BuildEvent, output: ReturnType<typeof createLineSplitter>): string[] {
  if ("output" in event) return output.take(event.output).map((text) => `  ${text}`);
  const before = output.flush().map((text) => `  ${text}`);
  if ("notice" in event) return [...before, `note: ${event.notice}`];
  if (!("step" in event) || event.step.state === "ended") return before;
  const { stage, line: at, text, state } = event.step;
  const place = at === 0 ? stage : `${stage}:${at}`;
  return [...before, `[${place}] ${text}${state === "cached" ? " (cached)" : ""}`];
}
