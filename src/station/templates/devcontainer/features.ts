import { posix } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../../contract/error/plain-problems.ts";
import { contextPath } from "../context/context-path.ts";
import { type Instruction, plainCopy } from "../dockerfile/instruction.ts";
import type { BuildRun } from "../steps/build-run.ts";
import { parseJsonc } from "./parse-jsonc.ts";

const FEATURES_MAX = 100;
const Value = z.union([z.string().max(131_072), z.boolean()]);
const Feature = z.looseObject({
  options: z.record(z.string().max(256), z.looseObject({ default: Value.optional() })).optional(),
  containerEnv: z.record(z.string().max(256), z.string().max(131_072)).optional(),
});

/** Keys that say nothing about a template, or that the options of devcontainer.json have used. */
const known: ReadonlySet<string> = new Set([
  ...["id", "version", "name", "description", "documentationURL", "licenseURL", "keywords", "deprecated", "legacyIds"],
  ...["options", "containerEnv"],
]);

/** What features add to a build. */
export interface FeatureInstructions {
  instructions: Instruction[];
  /** What has no effect, each as a sentence. */
  notices: string[];
}

/**
 * Returns the instructions that install features from folders of the project. Throws `unsupported` for a feature from a
 * registry or an archive: nothing that the project does not contain runs as root in its template.
 */
export async function featureInstructions(
  build: BuildRun,
  features: Readonly<Record<string, unknown>>,
  { folder, user }: { folder: string; user: string | null },
): Promise<FeatureInstructions> {
  const names = Object.keys(features);
  if (names.length > FEATURES_MAX) throw new CaissonError("too_large", `devcontainer.json has more than ${FEATURES_MAX} features`);
  const all: FeatureInstructions = { instructions: [], notices: [] };
  for (const [index, name] of names.entries()) {
    const { instructions, notices } = await installOf(build, { name, options: features[name], index, folder, user });
    all.instructions.push(...instructions);
    all.notices.push(...notices);
  }
  return all;
}

async function installOf(
  build: BuildRun,
  { name, options, index, folder, user }: { name: string; options: unknown; index: number; folder: string; user: string | null },
): Promise<FeatureInstructions> {
  if (!name.startsWith("./") && !name.startsWith("../"))
    throw new CaissonError("unsupported", `the feature ${JSON.stringify(name.slice(0, 200))} is not a folder of the project`, {
      hint: "Copy the feature to a folder in .devcontainer, and name it ./FOLDER.",
    });
  const path = contextPath(posix.join(folder, name));
  const parsed = checkValue(
    Feature,
    parseJsonc(await build.context.requireText(`${path}/devcontainer-feature.json`), `${name}/devcontainer-feature.json`),
  );
  if (!parsed.success) throw new CaissonError("invalid", `${name}/devcontainer-feature.json: ${tellProblems(parsed.problems)}`);
  const inside = `/tmp/devcontainer-features/${index}`;
  const env = { ...optionVariables(parsed.data, options, name), _REMOTE_USER: user ?? "root", _CONTAINER_USER: user ?? "root" };
  const containerEnv = Object.entries(parsed.data.containerEnv ?? {}).map(
    ([key, value]) => [key, value.replace(/[\\'"\s]/g, "\\$&")] as const,
  );
  const assignments = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  const notices = Object.keys(parsed.data)
    .filter((key) => !known.has(key))
    .map((key) => `${JSON.stringify(key.slice(0, 100))} of the feature ${name.slice(0, 200)} has no effect`);
  const instructions: Instruction[] = [
    ...(containerEnv.length === 0 ? [] : [{ kind: "env" as const, pairs: containerEnv, line: 0, text: `ENV of ${name}` }]),
    { kind: "copy", ...plainCopy, sources: [path], target: `${inside}/`, line: 0, text: `feature ${name}` },
    {
      ...{ kind: "run", heredocs: [], network: null, mounts: [], user: "root", line: 0, text: `feature ${name}: install.sh` },
      command: {
        form: "exec",
        argv: ["/usr/bin/env", ...assignments, "/bin/sh", "-c", `cd ${inside} && chmod +x install.sh && ./install.sh`],
      },
    },
  ];
  return { instructions, notices };
}

function optionVariables(feature: z.infer<typeof Feature>, options: unknown, name: string): Record<string, string> {
  const values = z.union([z.record(z.string(), Value), Value]).safeParse(options ?? {});
  if (!values.success)
    throw new CaissonError("invalid", `the options of the feature ${JSON.stringify(name.slice(0, 200))} are not texts or booleans`);
  const chosen = typeof values.data === "object" ? values.data : { version: values.data };
  const defaults = Object.entries(feature.options ?? {}).flatMap(([key, { default: value }]) =>
    value === undefined ? [] : [[key, value] as const],
  );
  const all = { ...Object.fromEntries(defaults), ...chosen };
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [variableName(key), String(value)]));
}

const variableName = (option: string) =>
  option
    .replace(/[^A-Za-z0-9_]/g, "_")
    .replace(/^\d/, "_$&")
    .toUpperCase()
    .slice(0, 256);
