import { join } from "node:path";
import { once } from "../lib/once.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { removeIfStale, staleSubjects } from "../station/inside/remove-stale-artifacts.ts";
import type { PrunedFiles } from "../station/machine/prune.ts";
import { sizeOf } from "../station/machine/usage.ts";
import type { StationCore } from "../station/station-core.ts";
import type { StepStore } from "../station/templates/steps/step-store.ts";
import type { UploadVerbs } from "../verbs/uploads.ts";
import { removeMirror, unusedMirrors } from "../workspace/git/unused-mirrors.ts";

interface UnusedFilesOptions {
  core: StationCore;
  uploads: Pick<UploadVerbs, "list" | "remove">;
  /** The runtime that stores templates. */
  templates: Runtime | null;
  /** The steps of template builds. */
  steps: StepStore;
}

/** Returns files that can be downloaded or created again, and files left behind by removed things. */
export function unusedFiles({ core, uploads, templates, steps }: UnusedFilesOptions): PrunedFiles[] {
  const sizeBelow = async (...path: string[]) => (await sizeOf(join(core.stateDir, ...path))).bytes;
  return [
    ...templateFiles(templates, sizeBelow),
    buildFiles(steps),
    {
      kind: "mirror",
      async find(isOld) {
        const old = (await unusedMirrors(core)).filter(({ lastFetchedMs }) => isOld(new Date(lastFetchedMs).toISOString()));
        return await Promise.all(
          old.map(async ({ name, url }) => ({
            ...{ kind: "mirror" as const, id: `mirrors/${name}`, name: url },
            ...{ bytes: await sizeBelow("mirrors", name), why: "no session uses this repository" },
          })),
        );
      },
      remove: (id) => removeMirror(nameOf(id), core),
    },
    {
      kind: "upload",
      async find() {
        const expired = (await uploads.list()).filter(({ expiresAt }) => expiresAt !== null && Date.parse(expiresAt) <= Date.now());
        return expired.map(({ id, bytes }) => ({ kind: "upload" as const, id, name: null, bytes, why: "it expired without being used" }));
      },
      remove: (id) => uploads.remove(id).then(() => true),
    },
    {
      kind: "artifacts",
      async find() {
        return await Promise.all(
          (await staleSubjects(core)).map(async (subject) => ({
            ...{ kind: "artifacts" as const, id: `artifacts/${subject}`, name: null },
            ...{ bytes: await sizeBelow("artifacts", subject), why: `${subject} was removed` },
          })),
        );
      },
      remove: (id) => removeIfStale(nameOf(id), core),
    },
  ];
}

/** The build cache. The newest steps come first, because they are built on earlier ones. */
function buildFiles(steps: StepStore): PrunedFiles {
  return {
    kind: "build",
    async find(isOld) {
      await steps.sweep();
      const unused = (await steps.unused()).filter(({ lastUsedMs }) => isOld(new Date(lastUsedMs).toISOString()));
      return unused.toReversed().map(({ key, text, bytes }) => ({
        ...{ kind: "build" as const, id: `builds/${key}`, name: text.slice(0, 100), bytes },
        why: "no template uses this step; a build can run it again",
      }));
    },
    remove: (id) => steps.remove(nameOf(id)),
  };
}

function templateFiles(runtime: Runtime | null, sizeBelow: (...path: string[]) => Promise<number>): PrunedFiles[] {
  const images = runtime?.images;
  if (images === undefined) return [];
  const unused = once(() => images.unused());
  const ofKind = (kind: "image" | "template", why: string): PrunedFiles => ({
    kind,
    async find(isOld) {
      const old = (await unused()).filter((each) => each.kind === kind && isOld(new Date(each.lastUsedMs).toISOString()));
      return await Promise.all(
        old.map(async ({ name }) => ({ kind, id: `templates/${name}`, name: null, bytes: await sizeBelow("templates", name), why })),
      );
    },
    remove: (id) => images.removeUnused(nameOf(id)),
  });
  return [
    ofKind("image", "no sandbox or snapshot uses it; it can be fetched again"),
    ofKind("template", "no sandbox or snapshot uses this copy of the machine's system"),
  ];
}

/** A file without an id is identified by its path in the state folder. */
const nameOf = (id: string) => id.slice(id.lastIndexOf("/") + 1);
