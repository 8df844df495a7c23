import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { parseImageReference } from "../../../contract/image/image-reference.ts";
import { ImageText } from "../../../contract/image/image-text.ts";
import type { TemplateConfig, TemplateView } from "../../../contract/template/template.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { contextPath } from "../context/context-path.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import { type Building, type BuildRun, type Files, keyOf, openSandbox } from "./build-run.ts";
import { emptyImage } from "./empty-image.ts";
import { emptyConfig } from "./stage-state.ts";

/** The files that a stage starts from, and the settings of its image. */
export interface Base {
  files: Files;
  config: TemplateConfig;
}

/**
 * Finds what a FROM or --from names: `scratch`, `host`, a name that the caller gave an image, an OCI layout or archive
 * of the context, a template, or an image. Throws `invalid`, `not_found`, `unsafe`, and what creating a sandbox throws.
 */
export async function* baseFiles(build: BuildRun, name: string, line: number): Building<Base> {
  if (name === "scratch") return { files: startingFiles(build, ["scratch"], await emptyImage(build.stateDir)), config: emptyConfig };
  if (name === "host")
    return { files: { ...startingFiles(build, ["host", hostStamp()], ""), template: { kind: "host" } }, config: emptyConfig };
  const chosen = Object.hasOwn(build.request.images, name) ? build.request.images[name] : undefined;
  if (chosen !== undefined) return yield* imageBase(build, chosen);
  if (parseImageReference(name)?.kind === "machine") return yield* imageBase(build, await imageInContext(build, name, line));
  const template = await templateOf(build, name);
  if (template !== null) return templateBase(template);
  if (parseImageReference(name) === null || !ImageText.safeParse(name).success)
    throw problemAt(line, `${JSON.stringify(excerpt(name))} is not an image, a template or a stage`);
  return yield* imageBase(build, name);
}

function startingFiles(build: BuildRun, identity: readonly unknown[], reference: string): Files {
  const key = keyOf("base", build.owner, build.request.runtime ?? null, identity);
  return { key, template: { kind: "image", reference }, runtime: undefined, record: null };
}

/** A changed system of the machine is another base. */
function hostStamp(): unknown[] {
  return ["/etc/os-release", "/var/lib/dpkg/status", "/lib/apk/db/installed", "/var/lib/rpm"].map((path) => {
    const stats = lstatOrNull(path);
    return stats === null ? null : [stats.size, Math.floor(stats.mtimeMs)];
  });
}

async function templateOf(build: BuildRun, name: string): Promise<TemplateView | null> {
  try {
    return await build.templates.find(name, { owner: build.owner });
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  }
}

function templateBase(template: TemplateView): Base {
  const { runtime, snapshot, digest, config } = template;
  return { files: { key: keyOf("template", digest), template: { kind: "snapshot", id: snapshot }, runtime, record: null }, config };
}

/** The settings of an image are read once, after a sandbox has fetched and unpacked it. */
async function* imageBase(build: BuildRun, reference: string): Building<Base> {
  const { imageIdentity } = await import("../../../runtimes/oci/template/image.ts");
  const about = { reference, stateDir: build.stateDir, owner: build.owner };
  let identity = await imageIdentity(about);
  let runtime: string | undefined;
  if (identity === null || build.request.noCache) {
    runtime = yield* unpack(build, reference);
    identity = await imageIdentity(about);
  }
  // An image that only another runtime's engine has is known by its name alone.
  const files = startingFiles(build, ["image", identity ?? reference], reference);
  const known = build.request.noCache ? null : await build.steps.findBase(files.key);
  if (known !== null) return { files, config: known };
  runtime ??= yield* unpack(build, reference);
  const config = runtime === "oci" ? await configOf(build, reference) : emptyConfig;
  await build.steps.saveBase(files.key, config);
  return { files, config };
}

/** Fetches and unpacks an image by creating a sandbox, and returns the runtime that did. */
async function* unpack(build: BuildRun, reference: string): Building<string> {
  yield { notice: `reading the image ${excerpt(reference)}` };
  const sandbox = await openSandbox(build, startingFiles(build, [], reference), { usesNetwork: false });
  const { runtime } = sandbox.info;
  await sandbox.destroy();
  return runtime;
}

/** Only after the image is unpacked, so this reads what is there. */
async function configOf({ stateDir, owner }: BuildRun, reference: string): Promise<TemplateConfig> {
  const { resolveImage } = await import("../../../runtimes/oci/template/image.ts");
  const { config } = await resolveImage({ reference, stateDir, owner });
  const { env, workdir, user, entrypoint, command } = config;
  return {
    ...{ ...emptyConfig, env, workdir, user },
    entrypoint: entrypoint.length > 0 ? entrypoint : null,
    command: command.length > 0 ? command : null,
  };
}

/** An image that the Dockerfile names by a path is part of the context, and never another place of the machine. */
async function imageInContext(build: BuildRun, name: string, line: number): Promise<string> {
  const place = name.replace(/^(?:oci|oci-archive|docker-archive):/, "");
  if (place.startsWith("/"))
    throw problemAt(line, `${JSON.stringify(excerpt(name))} is a path of the machine, which a Dockerfile cannot use`, {
      code: "denied",
      hint: "Give it a name on the command line: --base NAME=PATH, and write FROM NAME.",
    });
  const path = contextPath(place);
  const { context } = build;
  const [, folder = path, tag = ""] = context.isFolder(path) ? [] : (/^(.+)(:[^:/]+)$/.exec(path) ?? []);
  if (context.isFolder(folder)) {
    const documents =
      folder === "" ? [null] : [await context.readText(`${folder}/oci-layout`), await context.readText(`${folder}/index.json`)];
    if (documents.includes(null)) throw problemAt(line, `${JSON.stringify(excerpt(folder))} is not an OCI layout`);
    return `oci:${join(context.folder, folder)}${tag}`;
  }
  const { sources } = await context.find([path], { excludes: [] });
  if (sources[0]?.entries[0]?.kind !== "file") throw problemAt(line, `${JSON.stringify(excerpt(path))} is not an archive`);
  return `oci-archive:${join(context.folder, path)}`;
}
