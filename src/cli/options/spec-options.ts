import { isAbsolute, resolve } from "node:path";
import { defaultLimits } from "../../contract/default-limits.ts";
import { CaissonError } from "../../contract/error.ts";
import { secretsForOwner } from "../../contract/network.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { type LimitsRequest, SandboxSpec, type Template, WorkspaceAccess, type WorkspaceMount } from "../../contract/sandbox.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { WorkspaceGuard } from "../../contract/workspace-guard.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { hidingFrom } from "./hiding-asked.ts";
import { mountsFrom } from "./mounts-asked.ts";
import { networkFrom } from "./network-asked.ts";
import { checkOptions } from "./option-names.ts";
import { parseBytes, parseCount, parseNumber } from "./option-values.ts";
import { pairs } from "./pairs-asked.ts";

/**
 * The sandbox that the options of `commands.ts` ask for, over the configuration's defaults. Throws `invalid`,
 * `unsupported`.
 */
export function sandboxFrom(
  context: CliContext,
  given: ParsedArguments,
  extra: { keep: boolean; labels?: Record<string, string>; timeoutMs?: number | undefined },
): CreateSandbox {
  const { limits, secretNames, ...settings } = sandboxSettingsFrom(context, given);
  const spec = checkOptions(SandboxSpec, {
    template: templateFrom(context, given),
    workspace: workspaceFrom(context, given),
    limits: withTimeout({ ...context.config.limits, ...limits }, extra.timeoutMs),
    ...settings,
    allowRoot: given.flag("allow-root"),
    stationAccess: given.flag("station-access"),
    keep: extra.keep,
    labels: extra.labels ?? {},
    ...defined({ name: given.option("name") }),
  });
  return {
    spec,
    secretNames,
    guard: guardFrom(context, given),
    ...defined({ runtime: runtimeFrom(given), snapshot: given.option("snapshot") }),
  };
}

/** What the options that every sandbox has ask for, also an agent's. Throws `invalid`. */
export function sandboxSettingsFrom(context: CliContext, given: ParsedArguments) {
  const { cwd: folder, config } = context;
  return {
    mounts: mountsFrom(given, { folder }),
    limits: limitsFrom(given),
    env: pairs(context, given.options("env"), "env"),
    ...networkFrom(given, { folder, secrets: secretsForOwner(config.secrets, LOCAL_OWNER) }),
  };
}

/**
 * The runtime that was asked for. Who chooses an OCI runtime, perhaps for its stronger wall, is given no other kind
 * when it cannot be used. Throws `invalid`.
 */
export function runtimeFrom(given: ParsedArguments): string | undefined {
  const runtime = given.option("runtime");
  if (given.option("oci-runtime") === undefined) return runtime;
  if (runtime !== undefined && runtime !== "oci" && runtime !== "auto")
    throw new CaissonError("invalid", `--oci-runtime goes with the runtime oci, not with ${runtime}`);
  return "oci";
}

/** How the workspace is looked at before the sandbox sees it. Throws `invalid`. */
function guardFrom(context: CliContext, given: ParsedArguments): WorkspaceGuard {
  return { ...hidingFrom(context, given), named: given.flag("workspace"), allowHooks: given.flag("allow-hooks") };
}

/** A command may run as long as was asked for, also when that is longer than commands commonly may. */
function withTimeout(limits: LimitsRequest, timeoutMs: number | undefined): LimitsRequest {
  if (timeoutMs === undefined || timeoutMs <= (limits.wallClockMs ?? defaultLimits.wallClockMs)) return limits;
  return { ...limits, wallClockMs: timeoutMs };
}

function templateFrom(context: CliContext, given: ParsedArguments): Template {
  const snapshot = given.option("snapshot");
  const image = given.option("image");
  if (snapshot !== undefined && image !== undefined) throw new CaissonError("invalid", "--image and --snapshot exclude each other");
  // The station knows which one is meant.
  if (snapshot !== undefined) return { kind: "host" };
  const reference = image ?? context.config.image;
  if (reference === undefined || reference === "host") return { kind: "host" };
  return { kind: "image", reference: imageFrom(reference, context.cwd) };
}

/** A path is relative to the user's folder, not to wherever the runtime runs. */
export function imageFrom(reference: string, folder: string): string {
  return /^\.{0,2}\//.test(reference) ? resolve(folder, reference) : reference;
}

function workspaceFrom(context: CliContext, given: ParsedArguments): WorkspaceMount {
  const asked = given.option("workspace");
  if (given.flag("no-workspace")) {
    if (asked !== undefined) throw new CaissonError("invalid", "--workspace and --no-workspace exclude each other");
    return { kind: "empty" };
  }
  // It has a workspace of its own, which this folder would hide.
  if (asked === undefined && given.option("snapshot") !== undefined) return { kind: "empty" };
  const colon = asked === undefined ? -1 : asked.lastIndexOf(":");
  const mode = asked?.slice(colon + 1) ?? "";
  const access = colon < 0 ? undefined : WorkspaceAccess.safeParse(mode).data;
  if (asked !== undefined && colon >= 0 && access === undefined && !mode.includes("/") && mode !== "") {
    throw new CaissonError("invalid", `--workspace ${asked}: ${JSON.stringify(mode)} is not a mode`, {
      hint: "The mode is overlay, rw or ro.",
    });
  }
  const folder = asked === undefined ? context.cwd : access === undefined ? asked : asked.slice(0, colon);
  if (folder === "" || folder.includes("\0")) throw new CaissonError("invalid", "--workspace names no folder");
  return { kind: "folder", path: isAbsolute(folder) ? folder : resolve(context.cwd, folder), access: access ?? "overlay" };
}

function limitsFrom(given: ParsedArguments): LimitsRequest {
  const limits: LimitsRequest = {};
  const memory = given.option("memory");
  if (memory !== undefined) limits.memoryBytes = parseBytes("memory", memory);
  const cpus = given.option("cpus");
  if (cpus !== undefined) limits.cpus = parseNumber("cpus", cpus);
  const pids = given.option("pids");
  if (pids !== undefined) limits.pids = parseCount("pids", pids);
  const disk = given.option("disk");
  if (disk !== undefined) limits.diskBytes = parseBytes("disk", disk);
  const output = given.option("output-max");
  if (output !== undefined) limits.outputBytes = parseBytes("output-max", output);
  return limits;
}
