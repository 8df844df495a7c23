import { join } from "node:path";
import type { Runtime } from "../sandbox/runtime.ts";
import { createArtifacts } from "../station/inside/artifacts.ts";
import { staleSubjects } from "../station/inside/remove-stale-artifacts.ts";
import type { PrunedFiles } from "../station/machine/prune.ts";
import { sizeOf } from "../station/machine/usage.ts";
import type { StationCore } from "../station/station-core.ts";
import type { UploadVerbs } from "../verbs/uploads.ts";
import { removeMirror, unusedMirrors } from "../workspace/git/unused-mirrors.ts";

interface UnusedFilesOptions {
  core: StationCore;
  uploads: Pick<UploadVerbs, "list" | "remove">;
  /** The runtime that stores templates. */
  templates: Runtime | null;
}

/** Returns what can be downloaded or made again, and files of things that are gone. */
export function unusedFiles({ core, uploads, templates }: UnusedFilesOptions): PrunedFiles[] {
  const sizeBelow = async (...path: string[]) => (await sizeOf(join(core.stateDir, ...path))).bytes;
  return [
    ...templateFiles(templates, sizeBelow),
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
      async remove(id) {
        const subject = nameOf(id);
        if (!(await staleSubjects(core)).includes(subject)) return false;
        await createArtifacts(core).remove(subject);
        return true;
      },
    },
  ];
}

function templateFiles(runtime: Runtime | null, sizeBelow: (...path: string[]) => Promise<number>): PrunedFiles[] {
  const images = runtime?.images;
  if (images === undefined) return [];
  const ofKind = (kind: "image" | "template", why: string): PrunedFiles => ({
    kind,
    async find(isOld) {
      const old = (await images.unused()).filter(
        ({ name, lastUsedMs }) => name.startsWith("image-") === (kind === "image") && isOld(new Date(lastUsedMs).toISOString()),
      );
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

/** The id of a file without one is its place in the state folder. */
const nameOf = (id: string) => id.slice(id.lastIndexOf("/") + 1);
