import { createHash } from "node:crypto";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { parseImageReference } from "../../../contract/image/image-reference.ts";
import { ImageText } from "../../../contract/image/image-text.ts";
import type { TemplateConfig, TemplateView } from "../../../contract/template/template.ts";
import { lstatOrNull } from "../../../lib/paths.ts";
import { contextPath } from "../context/build-context.ts";
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
  if (chosen !== undefined)
    return yield* imageBase(build, { reference: chosen, identity: [chosen, await build.digestOfImage(chosen)] }, line);
  if (parseImageReference(name)?.kind === "machine") return yield* imageBase(build, await imageInContext(build, name, line), line);
  const template = await templateOf(build, name);
  if (template !== null) return templateBase(template);
  if (parseImageReference(name) === null || !ImageText.safeParse(name).success)
    throw problemAt(line, `${JSON.stringify(excerpt(name))} is not an image, a template or a stage`);
  return yield* imageBase(build, { reference: name, identity: [name, await build.digestOfImage(name)] }, line);
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

interface NamedImage {
  reference: string;
  /** What the image's files depend on. */
  identity: readonly unknown[];
}

/** The settings of an image are read once, in a sandbox that fetches and unpacks it. */
async function* imageBase(build: BuildRun, { reference, identity }: NamedImage, line: number): Building<Base> {
  const files = startingFiles(build, ["image", ...identity], reference);
  const known = build.request.noCache ? null : await build.steps.findBase(files.key);
  if (known !== null) return { files, config: known };
  yield { notice: `reading the image ${excerpt(reference)}` };
  const sandbox = await openSandbox(build, files, { usesNetwork: false }).catch((error: unknown) => {
    throw error instanceof CaissonError
      ? problemAt(line, error.message, { code: error.code, ...(error.hint && { hint: error.hint }) })
      : error;
  });
  const { runtime } = sandbox.info;
  await sandbox.destroy();
  const config = runtime === "oci" ? await configOf(build, reference) : emptyConfig;
  await build.steps.saveBase(files.key, config);
  return { files, config };
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
async function imageInContext(build: BuildRun, name: string, line: number): Promise<NamedImage> {
  const place = name.replace(/^(?:oci|oci-archive|docker-archive):/, "");
  if (place.startsWith("/"))
    throw problemAt(line, `${JSON.stringify(excerpt(name))} is a path of the machine, which a Dockerfile cannot use`, {
      code: "denied",
      hint: "Give it a name on the command line: --base NAME=PATH, and write FROM NAME.",
    });
  const path = contextPath(place);
  const { context } = build;
  if (context.isFolder(path)) {
    const [layout, index] =
      path === "" ? [null, null] : [await context.readText(`${path}/oci-layout`), await context.readText(`${path}/index.json`)];
    if (layout === null || index === null) throw problemAt(line, `${JSON.stringify(excerpt(path))} is not an OCI layout`);
    return { reference: `oci:${join(context.folder, path)}`, identity: ["layout", createHash("sha256").update(index).digest("hex")] };
  }
  const [source] = await context.find(path, { excludes: [] });
  const [entry] = source?.entries ?? [];
  if (entry?.kind !== "file") throw problemAt(line, `${JSON.stringify(excerpt(path))} is not an archive`);
  return { reference: `oci-archive:${join(context.folder, path)}`, identity: ["archive", await context.digest(entry)] };
}
