import { z } from "zod";
import { NameOrId } from "../../../contract/api/name-or-id.ts";
import { ChosenName, EnvName, SandboxId } from "../../../contract/ids.ts";
import { showPolicy } from "../../../contract/network-text.ts";
import { LimitsRequest, type SandboxInfo } from "../../../contract/sandbox.ts";
import { defined } from "../../../lib/defined.ts";
import type { McpContext } from "../mcp-context.ts";
import { defineTool, type McpTool } from "../mcp-tool.ts";
import { checkChoice, checkModelsSandbox, narrowedLimits, narrowedNetwork } from "../narrowed.ts";

const SHOWN_MAX = 200;

export const networkWords = z
  .array(z.string().min(1).max(500))
  .max(100)
  .describe('What may be reached: ["none"], ["open"], ["registries"], or hosts such as ["github.com", "GET api.example.org/v1"].');

export const SandboxSummary = z.object({
  sandbox: SandboxId,
  name: z.string().nullable(),
  runtime: z.string(),
  state: z.string(),
  workspace: z.string().describe("What /workspace is."),
  network: z.string(),
  keep: z.boolean().describe("Whether it stays when this client goes away."),
  createdAt: z.string(),
  warnings: z.array(z.string()),
});

const CreateInput = z.strictObject({
  name: ChosenName.optional().describe("Stands for the sandbox's id."),
  workspace: z
    .enum(["default", "empty"])
    .default("default")
    .describe("default: the folder that the person chose, copy-on-write, if they chose one. empty: nothing."),
  network: networkWords.optional(),
  limits: LimitsRequest.optional(),
  env: z.record(EnvName, z.string().max(131_072)).optional(),
  image: z.string().min(1).max(4096).optional().describe("An image's name, where the person left that open."),
  snapshot: z.string().min(1).max(200).optional(),
  keep: z.boolean().optional().describe("Whether it stays when this client goes away."),
});

export function sandboxTools(context: McpContext): McpTool[] {
  const { station, held, bounds } = context;
  return [
    defineTool({
      name: "create_sandbox",
      title: "Create a sandbox",
      description:
        "Makes an isolated Linux sandbox for commands and files. /workspace is where work is done. Nothing that happens inside changes anything outside; look at changes with `diff`.",
      scope: "run",
      effect: "adds",
      input: CreateInput,
      output: SandboxSummary,
      async run(args, { signal }) {
        held.checkRoom();
        const sandbox = await station.sandboxes.create(sandboxAsked(args, context), { signal });
        const { info } = sandbox;
        await held.takeSandbox(sandbox);
        const structured = summaryOf(info);
        return { structured, text: `Made the sandbox ${info.id}.\n${told(structured)}` };
      },
    }),
    defineTool({
      name: "list_sandboxes",
      title: "List sandboxes",
      description: "The sandboxes that this client may use, the oldest first.",
      scope: "read",
      effect: "reads",
      input: z.strictObject({}),
      output: z.object({ sandboxes: z.array(SandboxSummary), more: z.int().nonnegative() }),
      async run() {
        const { sandboxes } = await station.sandboxes.list();
        const reached = sandboxes.filter(({ id }) => held.isReached(id)).map(summaryOf);
        const shown = reached.slice(-SHOWN_MAX);
        const text = shown.length === 0 ? "There is no sandbox; create_sandbox makes one." : shown.map(told).join("\n");
        return { structured: { sandboxes: shown, more: reached.length - shown.length }, text };
      },
    }),
    defineTool({
      name: "remove_sandbox",
      title: "Remove a sandbox",
      description: "Ends everything in a sandbox and removes it, with all files that were not taken out.",
      scope: "run",
      effect: "destroys",
      input: z.strictObject({ sandbox: NameOrId }),
      output: z.object({ sandbox: SandboxId }),
      async run({ sandbox }) {
        const { id } = await held.sandbox(sandbox);
        await station.sandboxes.remove(id);
        await held.forget(id);
        return { structured: { sandbox: id }, text: `Removed the sandbox ${id}.` };
      },
    }),
  ];

  function sandboxAsked(asked: z.output<typeof CreateInput>, { bounds: { sandbox } }: McpContext) {
    const { name, env, image, snapshot } = asked;
    checkChoice("the image", image, bounds);
    checkChoice("the snapshot", snapshot, bounds);
    const network = asked.network === undefined ? undefined : narrowedNetwork(asked.network, bounds);
    const template = image === undefined ? undefined : { kind: "image" as const, reference: image };
    checkModelsSandbox(defined({ snapshot, spec: defined({ network, template, env, name }) }));
    const { name: _person, ...spec } = sandbox.spec;
    return {
      ...sandbox,
      ...defined({ snapshot }),
      spec: {
        ...spec,
        ...defined({ name, network, template }),
        ...(asked.workspace === "empty" && { workspace: { kind: "empty" as const } }),
        env: { ...spec.env, ...env },
        limits: narrowedLimits(asked.limits ?? {}, bounds),
        keep: asked.keep ?? bounds.keeps,
      },
    };
  }
}

function summaryOf(info: SandboxInfo): z.output<typeof SandboxSummary> {
  const { id, name = null, runtime, state, workspace, network, keep, createdAt, warnings } = info;
  const shown = workspace.kind === "empty" ? "empty" : `the person's folder, ${workspace.access}`;
  return { sandbox: id, name, runtime, state, workspace: shown, network: showPolicy(network), keep, createdAt, warnings };
}

function told({ sandbox, name, runtime, state, workspace, network, warnings }: z.output<typeof SandboxSummary>): string {
  const called = name === null ? sandbox : `${sandbox} (${name})`;
  return [`${called}: ${state}, runtime ${runtime}, /workspace ${workspace}, network ${network}`, ...warnings].join("\n");
}
