import { CaissonError } from "../../../contract/error/error.ts";
import type { TemplateConfig, TemplateView } from "../../../contract/template/template.ts";
import { newId } from "../../../lib/new-id.ts";
import type { StoredTemplate } from "../../built-templates/template-store.ts";
import { devcontainerFile } from "../devcontainer/devcontainer-file.ts";
import { inFile } from "../dockerfile/dockerfile-problem.ts";
import { parseFile } from "../dockerfile/parse-dockerfile.ts";
import type { BuildPlan } from "./build-plan.ts";
import { type Building, type BuildRun, type Files, keyOf, takeStep } from "./build-run.ts";
import { buildStages } from "./build-stages.ts";

/** Builds a template and saves it under its name. Whatever happens, no half step is ever listed. */
export async function* buildTemplate(run: BuildRun): Building<void> {
  const plan = await planOf(run);
  const build = { ...run, request: { ...run.request, args: { ...plan.args, ...run.request.args } } };
  const ignored = [...plan.dockerfile.notices, ...plan.notices];
  for (const notice of ignored) yield { notice };
  const { files, state } = yield* withFile(plan, buildStages(build, plan.dockerfile, plan.target));
  yield* saveTemplate(build, { files, config: state.config, kind: plan.kind, ignored });
}

/** Names the file in errors that name a line. */
async function* withFile<Result>({ file, extendedBy }: BuildPlan, building: Building<Result>): Building<Result> {
  try {
    return yield* building;
  } catch (error) {
    const isExtension = error instanceof CaissonError && error.details?.line === 0;
    throw inFile(error, isExtension && extendedBy !== null ? extendedBy : file);
  }
}

/** Saves files as a template. Files that no step wrote become a separate step, since a template needs a snapshot. */
export async function* saveTemplate(
  build: BuildRun,
  { files, config, kind, ignored }: { files: Files; config: TemplateConfig; kind: TemplateView["kind"]; ignored: readonly string[] },
): Building<void> {
  const about = { stage: "0", line: 1, text: "FROM", usesNetwork: false };
  const { key, template, record, runtime } =
    files.template.kind === "snapshot" ? files : yield* takeStep(build, files, { ...about, inputs: ["base"], async work() {} });
  if (template.kind !== "snapshot" || runtime === undefined) throw new Error("a step has no snapshot");
  const { name } = build.request;
  const stored: StoredTemplate = {
    ...{ id: newId("tpl"), owner: build.owner, kind, runtime, snapshot: template.id, config },
    ignored: ignored.slice(0, 1000).map((text) => text.slice(0, 1000)),
    digest: keyOf("template", key, config),
    bytes: record?.bytes ?? 0,
    createdAt: new Date().toISOString(),
  };
  const same = (await build.templates.list({ owner: build.owner })).find(
    ({ digest, snapshot }) => digest === stored.digest && snapshot === stored.snapshot,
  );
  const whole = same === undefined ? stored : { ...stored, id: same.id, createdAt: same.createdAt };
  if (same === undefined || (name !== undefined && !same.names.includes(name))) await build.templates.save(whole, name ?? null);
  yield { template: await build.templates.find(whole.id, { owner: build.owner }) };
}

async function planOf(build: BuildRun): Promise<BuildPlan> {
  const { request, context } = build;
  const plain = (text: string, file: string): BuildPlan => ({
    ...{ kind: "dockerfile", file, extendedBy: null },
    dockerfile: parseFile(text, file),
    target: request.target,
    args: {},
    notices: [],
  });
  if (request.dockerfile !== undefined) {
    await context.useIgnoreFile(null);
    return plain(request.dockerfile, "Dockerfile");
  }
  const file = request.file ?? (await defaultFile(build));
  if (/\.jsonc?$/.test(file)) return await devcontainerFile(build, file);
  await context.useIgnoreFile(file);
  return plain(await context.requireText(file), file);
}

const defaultFiles = ["Dockerfile", "Containerfile", ".devcontainer/devcontainer.json", ".devcontainer.json"];

async function defaultFile({ context }: BuildRun): Promise<string> {
  for (const file of defaultFiles) if ((await context.readText(file)) !== null) return file;
  throw new CaissonError("not_found", `${context.folder} has no ${defaultFiles.slice(0, 3).join(" and no ")}`, {
    hint: "Name the file with --file.",
  });
}
