import { isAbsolute, resolve } from "node:path";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { secretsForOwner } from "../../contract/network/network.ts";
import { SandboxConfig, type Template, type WorkspaceMount } from "../../contract/sandbox/sandbox.ts";
import { limitFieldOptions, sandboxFieldOptions, startFieldOptions } from "../../contract/sandbox/sandbox-field-options.ts";
import { type LimitsRequest, type SandboxFieldValues, WorkspaceAccess } from "../../contract/sandbox/sandbox-fields.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { WorkspaceGuard } from "../../contract/workspace/workspace-guard.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "./option-names.ts";
import { hidingFrom } from "./parse-hiding.ts";
import { mountsFrom } from "./parse-mounts.ts";
import { networkFrom } from "./parse-network.ts";
import { pairs } from "./parse-pairs.ts";
import { readFields } from "./read-fields.ts";

/**
 * Returns the sandbox that the command line describes, with the configuration's defaults. Throws `invalid`,
 * `unsupported`.
 */
export function parseSandboxOptions(
  context: CliContext,
  args: ParsedArguments,
  extra: { keep: boolean; labels?: Record<string, string>; timeoutMs?: number | undefined },
): CreateSandbox {
  const { limits, secretNames, ...settings } = sandboxSettingsFrom(context, args);
  const sandboxConfig = checkOptions(SandboxConfig, {
    template: templateFrom(context, args),
    workspace: workspaceFrom(context, args),
    limits: withTimeout({ ...context.config.limits, ...limits }, extra.timeoutMs),
    ...settings,
    keep: extra.keep,
    labels: extra.labels ?? {},
    ...defined({ name: args.option("name") }),
  });
  return {
    spec: sandboxConfig,
    secretNames,
    guard: guardFrom(context, args),
    ...defined({ runtime: runtimeFrom(args), snapshot: args.option("snapshot"), template: args.option("template") }),
  };
}

/** Parses the options that all sandboxes have, including those of agents. Throws `invalid`. */
export function sandboxSettingsFrom(context: CliContext, args: ParsedArguments) {
  const { cwd: folder, config } = context;
  return {
    ...readFields<SandboxFieldValues>(args, sandboxFieldOptions),
    mounts: mountsFrom(args, { folder }),
    limits: readFields<LimitsRequest>(args, limitFieldOptions),
    env: pairs(context, args.options("env"), "env"),
    ...networkFrom(args, { folder, secrets: secretsForOwner(config.secrets, LOCAL_OWNER) }),
  };
}

/** Parses the options for the template and runtime of a run's sandbox. Throws `invalid`. */
export function startSettingsFrom(context: CliContext, args: ParsedArguments) {
  const image = args.option("image");
  return {
    ...readFields<{ ociRuntime: string; snapshot: string; template: string }>(args, startFieldOptions),
    mountGuard: { ...hidingFrom(context, args), allowHooks: args.flag("allow-hooks") },
    ...defined({ runtime: runtimeFrom(args), image: image === undefined ? undefined : imageFrom(image, context.cwd) }),
  };
}

/**
 * Returns the requested runtime. --oci-runtime never falls back to another kind of runtime, because the user may need
 * its stronger isolation. Throws `invalid`.
 */
function runtimeFrom(args: ParsedArguments): string | undefined {
  const runtime = args.option("runtime");
  if (args.option("oci-runtime") === undefined) return runtime;
  if (runtime !== undefined && runtime !== "oci" && runtime !== "auto")
    throw new CaissonError("invalid", `--oci-runtime requires the runtime oci, not ${runtime}`);
  return "oci";
}

/** Returns the checks that the workspace undergoes before a sandbox sees it. Throws `invalid`. */
function guardFrom(context: CliContext, args: ParsedArguments): WorkspaceGuard {
  return { ...hidingFrom(context, args), named: args.flag("workspace"), allowHooks: args.flag("allow-hooks") };
}

/** A command may run as long as requested, even if that exceeds the usual limit. */
function withTimeout(limits: LimitsRequest, timeoutMs: number | undefined): LimitsRequest {
  if (timeoutMs === undefined || timeoutMs <= (limits.wallClockMs ?? defaultLimits.wallClockMs)) return limits;
  return { ...limits, wallClockMs: timeoutMs };
}

function templateFrom(context: CliContext, args: ParsedArguments): Template {
  const snapshot = args.option("snapshot");
  const image = args.option("image");
  const template = args.option("template");
  if ([image, snapshot, template].filter((each) => each !== undefined).length > 1)
    throw new CaissonError("invalid", "--image, --snapshot and --template are mutually exclusive");
  // The station resolves the name.
  if (snapshot !== undefined || template !== undefined) return { kind: "host" };
  const reference = image ?? context.config.image;
  if (reference === undefined || reference === "host") return { kind: "host" };
  return { kind: "image", reference: imageFrom(reference, context.cwd) };
}

/** Resolves a path in the user's current folder, because the runtime may run elsewhere. */
function imageFrom(reference: string, folder: string): string {
  return /^\.{0,2}\//.test(reference) ? resolve(folder, reference) : reference;
}

function workspaceFrom(context: CliContext, args: ParsedArguments): WorkspaceMount {
  const workspace = args.option("workspace");
  if (args.flag("no-workspace")) {
    if (workspace !== undefined) throw new CaissonError("invalid", "--workspace and --no-workspace are mutually exclusive");
    return { kind: "empty" };
  }
  // A snapshot contains its own workspace, which this folder would hide.
  if (workspace === undefined && args.option("snapshot") !== undefined) return { kind: "empty" };
  const colon = workspace === undefined ? -1 : workspace.lastIndexOf(":");
  const mode = workspace?.slice(colon + 1) ?? "";
  const access = colon < 0 ? undefined : WorkspaceAccess.safeParse(mode).data;
  if (workspace !== undefined && colon >= 0 && access === undefined && !mode.includes("/") && mode !== "") {
    throw new CaissonError("invalid", `--workspace ${workspace}: ${JSON.stringify(mode)} is not a mode`, {
      hint: "Use overlay, rw or ro.",
    });
  }
  const folder = workspace === undefined ? context.cwd : access === undefined ? workspace : workspace.slice(0, colon);
  if (folder === "" || folder.includes("\0")) throw new CaissonError("invalid", "--workspace names no folder");
  return { kind: "folder", path: isAbsolute(folder) ? folder : resolve(context.cwd, folder), access: access ?? "overlay" };
}
