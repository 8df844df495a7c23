import { Writable } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { McpBounds } from "../../contract/mcp-bounds.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { hidingFrom } from "../options/hiding-asked.ts";
import { runtimeFrom, sandboxFrom, sandboxSettingsFrom } from "../options/spec-options.ts";
import type { Output } from "../terminal/output.ts";

/** `caisson mcp` */
export async function mcp(context: CliContext, given: ParsedArguments): Promise<number> {
  if (context.stdin.isTTY) {
    throw new CaissonError("invalid", "this is for programs that speak MCP, and a terminal does not", {
      hint: "Let such a program start it; with Claude Code: claude mcp add caisson -- caisson mcp",
    });
  }
  const { signal } = context.interruption;
  await context.serveMcp({ bounds: boundsFrom(context, given), input: context.stdin, output: streamTo(context.stdout), signal });
  return 0;
}

/** What the person decides with the options; a model may only ask for less. */
export function boundsFrom(context: CliContext, given: ParsedArguments): McpBounds {
  const sandbox = sandboxFrom(context, withoutName(given), { keep: false });
  const { workspace, template } = sandbox.spec;
  const source: WorkspaceSource =
    workspace.kind === "folder" ? { kind: "folder", path: workspace.path, hiding: hidingFrom(context, given) } : { kind: "empty" };
  return {
    sandbox,
    run: {
      source,
      sourceNamed: given.flag("workspace"),
      ...defined({ model: given.option("model") }),
      settings: {
        ...sandboxSettingsFrom(context, given),
        mountGuard: { ...hidingFrom(context, given), allowHooks: given.flag("allow-hooks") },
        ...defined({
          runtime: runtimeFrom(given),
          ociRuntime: given.option("oci-runtime"),
          image: template.kind === "image" ? template.reference : undefined,
          snapshot: given.option("snapshot"),
          allowRoot: given.flag("allow-root") || undefined,
        }),
      },
    },
    most: sandbox.spec.network,
    choosesTemplate: false,
    keeps: false,
    reaches: given.flag("all") ? "all" : "own",
  };
}

/** Each sandbox has a name of its own, if any. */
function withoutName(given: ParsedArguments): ParsedArguments {
  return { ...given, option: (name) => (name === "name" ? undefined : given.option(name)) };
}

function streamTo(output: Output): Writable {
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      void output.writeRaw(chunk).then(() => done());
    },
  });
  // Who reads no more wants nothing more.
  void output.broken.then(() => stream.destroy());
  return stream;
}
