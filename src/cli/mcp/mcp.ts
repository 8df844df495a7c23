import { Writable } from "node:stream";
import type { McpBounds } from "../../contract/api/mcp-bounds.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { hidingFrom } from "../options/parse-hiding.ts";
import { parseSandboxOptions, sandboxSettingsFrom, startSettingsFrom } from "../options/parse-sandbox-options.ts";
import type { Output } from "../terminal/output.ts";

/** `caisson mcp` */
export async function mcp(context: CliContext, args: ParsedArguments): Promise<number> {
  if (context.stdin.isTTY) {
    throw new CaissonError("invalid", "caisson mcp serves an MCP client, and stdin is a terminal", {
      hint: "Let an MCP client start it, for example Claude Code: claude mcp add caisson -- caisson mcp",
    });
  }
  const { signal } = context.interruption;
  await context.serveMcp({ bounds: boundsFrom(context, args), input: context.stdin, output: streamTo(context.stdout), signal });
  return 0;
}

/** Returns the bounds that the user sets with options; a model can only request less. */
export function boundsFrom(context: CliContext, args: ParsedArguments): McpBounds {
  const sandbox = parseSandboxOptions(context, withoutName(args), { keep: false });
  const { workspace, template } = sandbox.spec;
  const source: WorkspaceSource =
    workspace.kind === "folder" ? { kind: "folder", path: workspace.path, hiding: hidingFrom(context, args) } : { kind: "empty" };
  return {
    sandbox,
    run: {
      source,
      sourceNamed: args.flag("workspace"),
      ...defined({ model: args.option("model") }),
      settings: {
        ...sandboxSettingsFrom(context, args),
        ...startSettingsFrom(context, args),
        ...defined({ image: template.kind === "image" ? template.reference : undefined }),
      },
    },
    most: sandbox.spec.network,
    choosesTemplate: false,
    keeps: false,
    reaches: args.flag("all") ? "all" : "own",
  };
}

/** Drops --name, because every sandbox needs a different name. */
function withoutName(args: ParsedArguments): ParsedArguments {
  return { ...args, option: (name) => (name === "name" ? undefined : args.option(name)) };
}

function streamTo(output: Output): Writable {
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      void output.writeRaw(chunk).then(() => done());
    },
  });
  // A client that stopped reading gets no more output.
  void output.broken.then(() => stream.destroy());
  return stream;
}
