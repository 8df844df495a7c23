import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { BuildImage } from "../../contract/image/image-verbs.ts";
import { type BuildEvent, BuildTemplate, ImportTemplate, TagTemplate } from "../../contract/template/template-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import { randomLetters } from "../../lib/new-id.ts";
import type { RuntimeImages } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { TemplateVerbs } from "../../verbs/templates.ts";
import { createTemplateStore } from "../built-templates/template-store.ts";
import type { LocalSandboxes } from "../sandboxes/local-sandboxes.ts";
import { openBuildContext } from "./context/build-context.ts";
import { exportTemplate } from "./export-template.ts";
import { baseFiles } from "./steps/base-files.ts";
import type { Building, BuildRun } from "./steps/build-run.ts";
import { buildTemplate, saveTemplate } from "./steps/build-template.ts";
import { createStepStore } from "./steps/step-store.ts";

export interface LocalTemplatesOptions {
  stateDir: string;
  runtimes: RuntimeSet;
  sandboxes: Pick<LocalSandboxes, "create">;
  /** Returns the folder with an upload's files. Throws `not_found`. */
  treeOfUpload: (upload: string, options: { owner: string }) => Promise<string>;
  /** Called around every durable write, for tests of recovery. */
  crashpoint?: Crashpoint | undefined;
}

/** The runtime that stores images itself. */
const IMAGE_RUNTIME = "oci";

export function createLocalTemplates(options: LocalTemplatesOptions): TemplateVerbs {
  const { stateDir, crashpoint = noCrash } = options;
  const store = createTemplateStore({ stateDir, crashpoint });
  const building = async function* (request: z.output<typeof BuildTemplate>, who: Who, work: (run: BuildRun) => Building<void>) {
    const { owner = LOCAL_OWNER } = who;
    const folder = await contextFolder(request, { ...options, owner });
    using context = openBuildContext(folder, request);
    const steps = createStepStore({ ...options, templates: store });
    await steps.sweepAfterDeath();
    const id = `${randomLetters(12)}`;
    await using _active = await steps.begin(id, owner);
    const shared = { sandboxes: options.sandboxes, templates: store, steps, stateDir, crashpoint };
    yield* work({ ...shared, id, owner, request, context, signal: who.signal, counter: { snapshots: 0 } });
  };
  const buildDebian = async function* (run: BuildRun): Building<void> {
    const { debian, name = "debian" } = run.request;
    const request = parseRequest(BuildImage, { ...debian, distribution: "debian", name }, "an image");
    for await (const event of (await imagesOf(options.runtimes)).build(request))
      if ("progress" in event) yield { output: `${event.progress}\n` };
    const { files, config } = yield* baseFiles(run, name, 1);
    yield* saveTemplate(run, { files, config, kind: "image", ignored: [] });
  };
  return {
    async *build({ signal, owner, ...input }) {
      const request = parseRequest(BuildTemplate, input, "a template");
      yield* building(request, { signal, owner }, request.debian === undefined ? buildTemplate : buildDebian);
    },
    async *import({ signal, owner, ...input }): AsyncGenerator<BuildEvent> {
      const { name, image, runtime } = parseRequest(ImportTemplate, input, "a template");
      const request = BuildTemplate.parse({ name, images: { imported: image }, ...(runtime !== undefined && { runtime }) });
      yield* building(request, { signal, owner }, async function* (run) {
        const { files, config } = yield* baseFiles(run, "imported", 1);
        yield* saveTemplate(run, { files, config, kind: "image", ignored: [] });
      });
    },
    list: (query) => store.list(query),
    get: (word, who) => store.find(word, who),
    async tag(word, { owner, ...input }) {
      const { name } = parseRequest(TagTemplate, input, "a name");
      const { names: _, ...template } = await store.find(word, { owner });
      await store.save(template, name);
      return await store.find(template.id, { owner });
    },
    remove: (word, who) => store.remove(word, who),
    async *export(word, who) {
      yield* exportTemplate(await store.find(word, who), options);
    },
  };
}

/** Returns the images of the runtime that stores them. */
async function imagesOf(runtimes: RuntimeSet): Promise<RuntimeImages> {
  const { images } = await runtimes.get(IMAGE_RUNTIME);
  if (images === undefined) throw new Error(`the runtime ${IMAGE_RUNTIME} stores no images`);
  return images;
}

interface Who {
  signal?: AbortSignal | undefined;
  owner?: string | undefined;
}

async function contextFolder(
  { context, uploaded }: z.output<typeof BuildTemplate>,
  { stateDir, treeOfUpload, owner }: LocalTemplatesOptions & { owner: string },
): Promise<string> {
  if (uploaded !== undefined) return await treeOfUpload(uploaded.upload, { owner });
  if (context !== undefined) return context;
  const empty = join(stateDir, "builds", "empty");
  await mkdir(empty, { recursive: true, mode: 0o700 });
  return empty;
}
