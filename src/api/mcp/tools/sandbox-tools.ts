import { z } from "zod";
import { NameOrId } from "../../../contract/api/name-or-id.ts";
import { ChosenName, EnvName, SandboxId } from "../../../contract/ids.ts";
import { showPolicy } from "../../../contract/network/network-text.ts";
import type { SandboxInfo } from "../../../contract/sandbox/sandbox.ts";
import { LimitsRequest } from "../../../contract/sandbox/sandbox-fields.ts";
import { defined } from "../../../lib/defined.ts";
import type { McpContext } from "../mcp-context.ts";
import { defineTool, type McpTool } from "../mcp-tool.ts";
import { checkChoice, checkModelsSandbox, narrowedLimits, narrowedNetwork } from "../narrow-request.ts";

const SHOWN_MAX = 200;

export const networkWords = z
  .array(z.string().min(1).max(500))
  .max(100)
  .describe('What the network may reach: ["none"], ["open"], ["registries"], or hosts such as ["github.com", "GET api.example.org/v1"].');

export const SandboxSummary = z.object({
  sandbox: SandboxId,
  name: z.string().nullable(),
  runtime: z.string(),
  state: z.string(),
  workspace: z.string().describe("The content of /workspace."),
  network: z.string(),
  keep: z.boolean().describe("Whether it persists when this client disconnects."),
  createdAt: z.string(),
  warnings: z.array(z.string()),
});

const CreateInput = z.strictObject({
  name: ChosenName.optional().describe("A name to use instead of the sandbox's id."),
  workspace: z
    .enum(["default", "empty"])
    .default("default")
    .describe("default: the folder that the person chose, if any, copy-on-write. empty: an empty folder."),
  network: networkWords.optional(),
  limits: LimitsRequest.optional(),
  env: z.record(EnvName, z.string().max(131_072)).optional(),
  image: z.string().min(1).max(4096).optional().describe("An image name, if the person allows the choice."),
  snapshot: z.string().min(1).max(200).optional(),
  keep: z.boolean().optional().describe("Whether it persists when this client disconnects."),
});

export function sandboxTools(context: McpContext): McpTool[] {
  const { station, held, bounds } = context;
  return [
    defineTool({
      name: "create_sandbox",
      title: "Create a sandbox",
      description:
        "Creates an isolated Linux sandbox for commands and files. Work in /workspace. Nothing that happens inside changes anything outside; review changes with `diff`.",
      scope: "run",
      effect: "adds",
      input: CreateInput,
      output: SandboxSummary,
      async run(args, { signal }) {
        held.checkRoom();
        const sandbox = await station.sandboxes.create(createRequest(args, context), { signal });
        const { info } = sandbox;
        await held.takeSandbox(sandbox);
        const structured = summaryOf(info);
        return { structured, text: `Created the sandbox ${info.id}.\n${summaryText(structured)}` };
      },
    }),
    defineTool({
      name: "list_sandboxes",
      title: "List sandboxes",
      description: "Lists the sandboxes that this client may use, oldest first.",
      scope: "read",
      effect: "reads",
      input: z.strictObject({}),
      output: z.object({ sandboxes: z.array(SandboxSummary), more: z.int().nonnegative() }),
      async run() {
        const { sandboxes } = await station.sandboxes.list();
        const reached = sandboxes.filter(({ id }) => held.isReached(id)).map(summaryOf);
        const page = reached.slice(-SHOWN_MAX);
        const text = page.length === 0 ? "There are no sandboxes. Create one with create_sandbox." : page.map(summaryText).join("\n");
        return { structured: { sandboxes: page, more: reached.length - page.length }, text };
      },
    }),
    defineTool({
      name: "remove_sandbox",
      title: "Remove a sandbox",
      description: "Ends everything in a sandbox and removes it, with all files that were not copied out.",
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

  function createRequest(input: z.output<typeof CreateInput>, { bounds: { sandbox } }: McpContext) {
    const { name, env, image, snapshot } = input;
    checkChoice("the image", image, bounds);
    checkChoice("the snapshot", snapshot, bounds);
    const network = input.network === undefined ? undefined : narrowedNetwork(input.network, bounds);
    const template = image === undefined ? undefined : { kind: "image" as const, reference: image };
    checkModelsSandbox(defined({ snapshot, spec: defined({ network, template, env, name }) }));
    const { name: _person, ...config } = sandbox.spec;
    return {
      ...sandbox,
      ...defined({ snapshot }),
      spec: {
        ...config,
        ...defined({ name, network, template }),
        ...(input.workspace === "empty" && { workspace: { kind: "empty" as const } }),
        env: { ...config.env, ...env },
        limits: narrowedLimits(input.limits ?? {}, bounds),
        keep: input.keep ?? bounds.keeps,
      },
    };
  }
}

function summaryOf(info: SandboxInfo): z.output<typeof SandboxSummary> {
  const { id, name = null, runtime, state, workspace, network, keep, createdAt, warnings } = info;
  const place = workspace.kind === "empty" ? "empty" : `the person's folder, ${workspace.access}`;
  return { sandbox: id, name, runtime, state, workspace: place, network: showPolicy(network), keep, createdAt, warnings };
}

function summaryText({ sandbox, name, runtime, state, workspace, network, warnings }: z.output<typeof SandboxSummary>): string {
  const called = name === null ? sandbox : `${sandbox} (${name})`;
  return [`${called}: ${state}, runtime ${runtime}, /workspace ${workspace}, network ${network}`, ...warnings].join("\n");
}
